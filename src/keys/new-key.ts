import { parseDuration } from "../domain/duration.ts";
import { fieldError } from "../domain/errors.ts";
import type { ApiKey, KeyKind } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { RequestIdentity } from "./store.ts";

/** The input of a new key, issued or imported. */
export interface NewKeyInput {
  readonly name: string;
  readonly actorId: string;
  readonly scopes: readonly string[];
  /** A duration; undefined if the key does not expire. */
  readonly ttl?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId?: string | undefined;
}

/** Returns the key to store, created at `now`. Throws `INVALID_ARGUMENT` naming the field. */
export function newStoredKey(kind: KeyKind, keyId: string, draft: NewKeyInput, hint: string, now: number): ApiKey {
  checkMetadata(draft.metadata, "metadata");
  const created = new Date(now);
  return {
    keyId,
    kind,
    name: draft.name,
    actorId: draft.actorId,
    scopes: uniqueScopes(draft.scopes),
    metadata: draft.metadata,
    hint,
    createTime: created,
    updateTime: created,
    expireTime: draft.ttl === undefined ? null : new Date(now + parseDuration(draft.ttl, "ttl")),
    lastUsedTime: null,
    rotateTime: null,
    revokeTime: null,
    revocationReason: null,
    revocationDescription: null,
  };
}

/** Returns the identity of a create request (AIP-155); null without a request id. */
export function identify(draft: NewKeyInput, rawKey: string | null, keys: KeyRing): RequestIdentity | null {
  if (draft.requestId === undefined) return null;
  return { requestId: draft.requestId, fingerprint: fingerprintOf(draft, rawKey, keys.current) };
}

/** Rejects a different request with the same request id: returning the other request's key would hide the mistake. */
export function requireRepeat(draft: NewKeyInput, rawKey: string | null, stored: Uint8Array, keys: KeyRing): void {
  if (keys.all.some((key) => equalBytes(fingerprintOf(draft, rawKey, key), stored))) return;
  throw fieldError("REQUEST_ID_REUSED", "request_id", "belongs to an earlier request that asked for something else");
}

/** Returns a keyed hash of the request. It covers the raw key, hence the key. */
function fingerprintOf(draft: NewKeyInput, rawKey: string | null, key: ServerKey): Uint8Array {
  const metadata = Object.entries(draft.metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  return hmacSha256(
    key,
    JSON.stringify([draft.name, draft.actorId, draft.scopes, draft.ttl ?? null, metadata, rawKey]),
  );
}
