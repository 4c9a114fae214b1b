import { decodeUtf8 } from "../../lib/utf8.ts";
import { audience, type CaveatKind, claim, type Grant, scope, time } from "./caveat-kinds.ts";

/** Returns the caveats that the server mints for a grant: time, scope, the audience if it has one, then one per claim. */
export function formatGrant(grant: Grant): Uint8Array[] {
  const claims = Object.entries(grant.claims).map((entry) => print(claim, entry));
  const restricted = grant.audience === undefined ? [] : [print(audience, grant.audience)];
  const texts = [print(time, grant.expireTime), print(scope, grant.scopes), ...restricted, ...claims];
  return texts.map((text) => Buffer.from(text, "utf8"));
}

/** The inverse of `formatGrant`. Returns undefined for other caveats, another order, or a duplicate claim. */
export function parseGrant(conditions: readonly Uint8Array[]): Grant | undefined {
  const [timeText, scopeText, ...rest] = conditions.map(decodeUtf8);
  const expireTime = parse(time, timeText);
  const scopes = parse(scope, scopeText);
  const services = parse(audience, rest[0]);
  const claimTexts = services === undefined ? rest : rest.slice(1);
  const entries = claimTexts.map((text) => parse(claim, text)).filter((entry) => entry !== undefined);
  const claims = Object.fromEntries(entries);
  if (expireTime === undefined || scopes === undefined) return undefined;
  if (Object.keys(claims).length !== claimTexts.length) return undefined;
  return { expireTime, scopes, claims, ...(services !== undefined && { audience: services }) };
}

/** Restricts a grant by a holder's caveat. Returns undefined if the caveat is unknown, malformed or not satisfied. */
export function restrictGrant(grant: Grant, condition: Uint8Array): Grant | undefined {
  const text = decodeUtf8(condition);
  const restricted = restrictBy(time, grant, text) ?? restrictBy(scope, grant, text);
  return restricted ?? restrictBy(audience, grant, text) ?? restrictBy(claim, grant, text);
}

/** Returns undefined also for a caveat of another kind. */
function restrictBy<V>(kind: CaveatKind<V>, grant: Grant, text: string | undefined): Grant | undefined {
  const value = parse(kind, text);
  return value === undefined ? undefined : kind.restrict(grant, value);
}

function print<V>(kind: CaveatKind<V>, value: V): string {
  return kind.prefix + kind.format(value);
}

function parse<V>(kind: CaveatKind<V>, text: string | undefined): V | undefined {
  return text?.startsWith(kind.prefix) ? kind.parse(text.slice(kind.prefix.length)) : undefined;
}
