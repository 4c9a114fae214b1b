import { parseDuration } from "../domain/duration.ts";
import type { ApiKey, KeyKind } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";

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
