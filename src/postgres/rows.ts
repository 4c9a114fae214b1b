import type { ApiKey, KeyKind, KeySecret, RevocationReason, StoredKey } from "../record/key.ts";

/** A row of `api_keys` as the driver reads it: the columns that make an `ApiKey`. */
export interface KeyRow {
  key_id: string;
  kind: KeyKind;
  name: string;
  actor_id: string;
  scopes: string[];
  metadata: Record<string, string>;
  hint: string;
  create_time: Date;
  update_time: Date;
  expire_time: Date | null;
  last_used_time: Date | null;
  rotate_time: Date | null;
  revoke_time: Date | null;
  revocation_reason: RevocationReason | null;
  revocation_description: string | null;
}

/** The same with its secrets. */
export interface StoredKeyRow extends KeyRow {
  secret_version: number;
  digest: Buffer;
  digest_key_id: string;
  previous_secrets: { version: number; digest: string; digest_key_id: string; expire_time: string }[];
}

export const KEY_COLUMNS = [
  "key_id",
  "kind",
  "name",
  "actor_id",
  "scopes",
  "metadata",
  "hint",
  "create_time",
  "update_time",
  "expire_time",
  "last_used_time",
  "rotate_time",
  "revoke_time",
  "revocation_reason",
  "revocation_description",
] as const satisfies readonly (keyof KeyRow)[];

export const STORED_KEY_COLUMNS = [
  ...KEY_COLUMNS,
  "secret_version",
  "digest",
  "digest_key_id",
  "previous_secrets",
] as const satisfies readonly (keyof StoredKeyRow)[];

export function toApiKey(row: KeyRow): ApiKey {
  return {
    keyId: row.key_id,
    kind: row.kind,
    name: row.name,
    actorId: row.actor_id,
    scopes: row.scopes,
    metadata: row.metadata,
    hint: row.hint,
    createTime: row.create_time,
    updateTime: row.update_time,
    expireTime: row.expire_time,
    lastUsedTime: row.last_used_time,
    rotateTime: row.rotate_time,
    revokeTime: row.revoke_time,
    revocationReason: row.revocation_reason,
    revocationDescription: row.revocation_description,
  };
}

export function toStoredKey(row: StoredKeyRow): StoredKey {
  const current: KeySecret = {
    version: row.secret_version,
    digest: { keyId: row.digest_key_id, digest: row.digest },
    expireTime: null,
  };
  const previous = row.previous_secrets.map(
    (secret): KeySecret => ({
      version: secret.version,
      digest: { keyId: secret.digest_key_id, digest: Buffer.from(secret.digest, "hex") },
      expireTime: new Date(secret.expire_time),
    }),
  );
  return { key: toApiKey(row), secrets: [current, ...previous] };
}
