import { checkReservedScopes } from "../domain/admin-scopes.ts";
import { checkAll, fieldError } from "../domain/errors.ts";
import { type Expiry, type ExpiryInput, newExpiry, type TimestampValue, timeOf } from "../domain/expiry.ts";
import { checkIpRestriction, type IpRestriction } from "../domain/ip-restriction.ts";
import type { ApiKey } from "../domain/key.ts";
import { checkMetadata } from "../domain/limits.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import {
  checkQuotas,
  checkRateLimits,
  type Quota,
  type QuotaInput,
  type RateLimit,
  type RateLimitInput,
} from "../domain/rate-limit.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";
import { assertActorAllowed, assertCanGrant, assertKeyPageAllows } from "./authorization.ts";
import type { KeysContext, RequestIdentity } from "./ports.ts";

/** The input of a new key, issued or imported. */
export interface NewKeyInput extends ExpiryInput {
  readonly name: string;
  readonly actorId: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Undefined: the key is accepted from any address. */
  readonly ipRestriction?: IpRestriction | undefined;
  readonly rateLimits?: readonly RateLimitInput[];
  readonly quotas?: readonly QuotaInput[];
  readonly requestId?: string | undefined;
  /** For an admin token: the actors to which it is restricted; none: it is not restricted. */
  readonly restrictedToActorIds?: readonly string[];
}

/** A valid input, with the fields that are stored in another form. */
export interface ParsedNewKey extends NewKeyInput {
  readonly expiry: Expiry;
  /** Canonical CIDR blocks; null: any address. */
  readonly allowedCidrs: readonly string[] | null;
  readonly keyLimits: { readonly rateLimits: readonly RateLimit[] | null; readonly quotas: readonly Quota[] | null };
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseNewKey<I extends NewKeyInput>(
  { clock, lifetimes }: Pick<KeysContext, "clock" | "lifetimes">,
  input: I,
): I & ParsedNewKey {
  const [, , expiry, allowedCidrs, rateLimits, quotas] = checkAll(
    () => checkReservedScopes(input.scopes, "scopes"),
    () => checkMetadata(input.metadata, "metadata"),
    () => newExpiry(input, lifetimes, clock.now()),
    () => checkIpRestriction(input.ipRestriction, "ip_restriction"),
    () => checkRateLimits(input.rateLimits ?? [], "rate_limits"),
    () => checkQuotas(input.quotas ?? [], "quotas"),
  );
  return { ...input, expiry, allowedCidrs, keyLimits: { rateLimits, quotas } };
}

/** Returns the key to store, which is created at `now` (milliseconds), if the principal may create it. */
export function newStoredKey(
  { kind, keyId, hint }: Pick<ApiKey, "kind" | "keyId" | "hint">,
  input: ParsedNewKey,
  principal: Principal,
  now: number,
): ApiKey {
  assertActorAllowed(input.actorId, principal);
  const created = new Date(now);
  const key: ApiKey = {
    keyId,
    kind,
    name: input.name,
    actorId: input.actorId,
    scopes: [...new Set(input.scopes)],
    metadata: input.metadata,
    hint,
    createTime: created,
    updateTime: created,
    expireTime: timeOf(input.expiry, now),
    lastUsedTime: null,
    lastUsedAddress: null,
    previousSecrets: [],
    rotateTime: null,
    revokeTime: null,
    revocationReason: null,
    revocationDescription: null,
    disableTime: null,
    disableReason: null,
    allowedCidrs: input.allowedCidrs,
    restrictedToActorIds: restrictionOf(input),
    ...input.keyLimits,
    createdBy: callerName(principal),
    revokedBy: null,
    disabledBy: null,
    hashAlgorithm: null,
    adoptBeforeTime: null,
    adoptTime: null,
  };
  assertCanGrant(key, principal);
  assertKeyPageAllows(key, principal, now);
  return key;
}

/** What a create request has beside its input: its raw key, and fields by name that release 0.2 does not know. */
export interface RequestSource {
  readonly rawKey: string | null;
  readonly [field: string]: unknown;
}

export const NO_SOURCE: RequestSource = { rawKey: null };

/** Returns the identity of a create request (AIP-155); null without a request id. */
export function identify(input: NewKeyInput, source: RequestSource, keys: KeyRing): RequestIdentity | null {
  if (input.requestId === undefined) return null;
  return { requestId: input.requestId, fingerprint: fingerprintOf(input, source, keys.current) };
}

/** Rejects a different request with the same request id: returning the other request's key would hide the mistake. */
export function requireRepeat(input: NewKeyInput, source: RequestSource, stored: Uint8Array, keys: KeyRing): void {
  if (keys.all.some((key) => equalBytes(fingerprintOf(input, source, key), stored))) return;
  throw fieldError("REQUEST_ID_REUSED", "request_id", "was already used for a request with different parameters");
}

/** Returns a keyed hash of the request. It covers the raw key, hence the key. */
function fingerprintOf(input: NewKeyInput, { rawKey, ...later }: RequestSource, key: ServerKey): Uint8Array {
  const metadata = Object.entries(input.metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = [input.name, input.actorId, input.scopes, input.ttl ?? null, metadata, rawKey];
  return hmacSha256(key, JSON.stringify([...fields, ...laterFields(input, later)]));
}

/** Returns the fields that release 0.2 does not know. Without them a fingerprint is what 0.2 stored, so that its requests can be retried. */
function laterFields(input: NewKeyInput, ofSource: Readonly<Record<string, unknown>>): unknown[] {
  const { ipRestriction, expireTime, rateLimits, quotas } = input;
  const fields = {
    ip_restriction: ipRestriction?.allowedCidrs,
    expire_time: expireTime && timeText(expireTime),
    restricted_to_actor_ids: restrictionOf(input) ?? undefined,
    rate_limits: nonEmpty(rateLimits),
    quotas: nonEmpty(quotas)?.map(({ anchorTime, ...quota }) => [quota, anchorTime && timeText(anchorTime)]),
    ...ofSource,
  };
  return Object.entries(fields).filter(([, value]) => value !== undefined);
}

function nonEmpty<T>(list: readonly T[] = []): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

function timeText({ seconds, nanos }: TimestampValue): string {
  return `${seconds}.${nanos}`;
}

/** Returns the actors to which a key is restricted; null: it is not. */
function restrictionOf({ restrictedToActorIds = [] }: NewKeyInput): readonly string[] | null {
  return restrictedToActorIds.length === 0 ? null : [...new Set(restrictedToActorIds)];
}
