import { equalJson, type JsonObject, type JsonValue, parseJson } from "../../lib/json.ts";
import { formatRfc3339, parseRfc3339 } from "./rfc3339.ts";

/** What a macaroon grants. */
export interface Grant {
  /** Milliseconds since the epoch, exclusive. */
  readonly expireTime: number;
  readonly scopes: readonly string[];
  /** The services that may accept it. Absent: verifiers that name no service; empty: nobody. */
  readonly audience?: readonly string[] | undefined;
  readonly claims: JsonObject;
}

/** A kind of first-party caveat: `prefix` followed by a value. */
export interface CaveatKind<V> {
  readonly prefix: string;
  format(value: V): string;
  parse(text: string): V | undefined;
  /** Returns the grant restricted by the caveat, never wider; undefined if the caveat is not satisfied. */
  restrict(grant: Grant, value: V): Grant | undefined;
}

const NAME = /^[\x21-\x7e]+$/;
/** Without white space, so that the first ` = ` terminates it. */
const CLAIM_NAME = /^[^\s\p{Cc}\p{Cs}]+$/u;
const CLAIM_EQUALS = " = ";

/** `time < 2026-01-02T03:04:05Z` */
export const time: CaveatKind<number> = {
  prefix: "time < ",
  format: formatRfc3339,
  parse: parseRfc3339,
  restrict: (grant, limit) => ({ ...grant, expireTime: Math.min(grant.expireTime, limit) }),
};

/** `scope = orders.read orders.write`, separated by single spaces; an empty list means no scopes. */
export const scope: CaveatKind<readonly string[]> = {
  prefix: "scope = ",
  format: (scopes) => scopes.join(" "),
  parse: (text) => (text === "" ? [] : parseNames(text)),
  restrict: (grant, scopes) => ({ ...grant, scopes: grant.scopes.filter((granted) => scopes.includes(granted)) }),
};

/**
 * `audience = orders billing`, separated by single spaces, at least one. Several leave the services that all of them name, or none. Only the
 * server can give a macaroon an audience: without one it is accepted by no service that names itself, and a holder must not change that.
 */
export const audience: CaveatKind<readonly string[]> = {
  prefix: "audience = ",
  format: (services) => services.join(" "),
  parse: parseNames,
  restrict: (grant, services) => ({
    ...grant,
    audience: grant.audience?.filter((service) => services.includes(service)) ?? [],
  }),
};

/** `claim team = "blue"`. Any holder can append one, so `restrict` only requires a claim minted by the server and never adds one. */
export const claim: CaveatKind<readonly [name: string, value: JsonValue]> = {
  prefix: "claim ",
  format: ([name, value]) => name + CLAIM_EQUALS + JSON.stringify(value),
  parse: parseClaim,
  restrict: (grant, [name, value]) => (hasClaim(grant.claims, name, value) ? grant : undefined),
};

/** Returns whether a caveat can carry this scope or service. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Returns whether a caveat can carry a claim of this name. */
export function isClaimName(name: string): boolean {
  return CLAIM_NAME.test(name);
}

function parseNames(text: string): readonly string[] | undefined {
  const names = text.split(" ");
  return names.every(isName) ? names : undefined;
}

function parseClaim(text: string): readonly [string, JsonValue] | undefined {
  const end = text.indexOf(CLAIM_EQUALS);
  if (end < 0 || !isClaimName(text.slice(0, end))) return undefined;
  const value = parseJson(text.slice(end + CLAIM_EQUALS.length));
  return value === undefined ? undefined : [text.slice(0, end), value];
}

function hasClaim(claims: JsonObject, name: string, value: JsonValue): boolean {
  const minted = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return minted !== undefined && equalJson(minted, value);
}
