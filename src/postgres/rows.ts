import type { ApiKey, KeyKind, KeySecret, RevocationReason, StoredKey, VerifiableKey } from "../domain/key.ts";

/** The columns of `api_keys` that a `VerifiableKey` is made of, as returned by the driver. */
export interface VerifiableKeyRow {
  key_id: string;
  kind: KeyKind;
  actor_id: string;
  scopes: string[];
  metadata: Record<string, string>;
  expire_time: Date | null;
  revoke_time: Date | null;
}

/** The columns of an `ApiKey`. */
export interface KeyRow extends VerifiableKeyRow {
  name: string;
  hint: string;
  create_time: Date;
  update_time: Date;
  last_used_time: Date | null;
  rotate_time: Date | null;
  revocation_reason: RevocationReason | null;
  revocation_description: string | null;
}

/** The columns of its secrets. */
export interface SecretsRow {
  secret_version: number;
  digest: Buffer;
  digest_key_id: string;
  previous_secrets: { version: number; digest: string; digest_key_id: string; expire_time: string }[];
}

export type StoredKeyRow = KeyRow & SecretsRow;
export type VerifiableRow = VerifiableKeyRow & SecretsRow;

const VERIFIABLE_KEY_COLUMNS = [
  "key_id",
  "kind",
  "actor_id",
  "scopes",
  "metadata",
  "expire_time",
  "revoke_time",
] as const satisfies readonly (keyof VerifiableKeyRow)[];

export const KEY_COLUMNS = [
  ...VERIFIABLE_KEY_COLUMNS,
  "name",
  "hint",
  "create_time",
  "update_time",
  "last_used_time",
  "rotate_time",
  "revocation_reason",
  "revocation_description",
] as const satisfies readonly (keyof KeyRow)[];

const SECRETS_COLUMNS = [
  "secret_version",
  "digest",
  "digest_key_id",
  "previous_secrets",
] as const satisfies readonly (keyof SecretsRow)[];

export const STORED_KEY_COLUMNS = [...KEY_COLUMNS, ...SECRETS_COLUMNS] as const;
export const VERIFIABLE_COLUMNS = [...VERIFIABLE_KEY_COLUMNS, ...SECRETS_COLUMNS] as const;

export function toApiKey(row: KeyRow): ApiKey {
  return {
    ...toVerifiableKey(row),
    name: row.name,
    hint: row.hint,
    createTime: row.create_time,
    updateTime: row.update_time,
    lastUsedTime: row.last_used_time,
    rotateTime: row.rotate_time,
    revocationReason: row.revocation_reason,
    revocationDescription: row.revocation_description,
  };
}

export function toStoredKey(row: StoredKeyRow): StoredKey {
  return { key: toApiKey(row), secrets: toSecrets(row) };
}

/** The same with only the part of the key that verification needs. */
export function toVerifiable(row: VerifiableRow): StoredKey<VerifiableKey> {
  return { key: toVerifiableKey(row), secrets: toSecrets(row) };
}

function toVerifiableKey(row: VerifiableKeyRow): VerifiableKey {
  return {
    keyId: row.key_id,
    kind: row.kind,
    actorId: row.actor_id,
    scopes: row.scopes,
    metadata: row.metadata,
    expireTime: row.expire_time,
    revokeTime: row.revoke_time,
  };
}

function toSecrets(row: SecretsRow): KeySecret[] {
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
  return [current, ...previous];
}
