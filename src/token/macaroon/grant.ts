import { decodeUtf8 } from "../../lib/bytes.ts";
import { audience, type CaveatKind, claim, type Grant, scope, time } from "./caveat-kinds.ts";

interface Restriction {
  readonly prefix: string;
  restrict(grant: Grant, text: string): Grant | undefined;
}

/** The kinds of caveats that a holder may append. */
const RESTRICTIONS: readonly Restriction[] = [
  restriction(time),
  restriction(scope),
  restriction(audience),
  restriction(claim),
];

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
  const row = RESTRICTIONS.find(({ prefix }) => text?.startsWith(prefix));
  return text === undefined ? undefined : row?.restrict(grant, text);
}

function restriction<V>(kind: CaveatKind<V>): Restriction {
  const restrict = (grant: Grant, text: string) => {
    const value = parse(kind, text);
    return value === undefined ? undefined : kind.restrict(grant, value);
  };
  return { prefix: kind.prefix, restrict };
}

function print<V>(kind: CaveatKind<V>, value: V): string {
  return kind.prefix + kind.format(value);
}

function parse<V>(kind: CaveatKind<V>, text: string | undefined): V | undefined {
  return text?.startsWith(kind.prefix) ? kind.parse(text.slice(kind.prefix.length)) : undefined;
}
