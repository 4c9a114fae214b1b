import { fieldError } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { NewKeyInput } from "./new-key-input.ts";
import type { RequestIdentity } from "./store.ts";

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
