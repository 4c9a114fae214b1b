import type { ApiKey, RevocationReason, SecretDigest, StoredKey, VerifiableKey } from "../../domain/key.ts";
import type { VerifiableRecord } from "../../domain/key-lookup.ts";
import { parseTime } from "../connection/value-types.ts";
import { fromStoredLimit, fromStoredQuota, type StoredLimit, type StoredQuota } from "./stored-limits.ts";

/*
 * The columns of `api_keys`. The driver names them as here (`connect.ts`), so a row has the properties of the domain's types: `key_id` is
 * `keyId`.
 */

const VERIFIABLE_KEY_COLUMNS = [
  "keyId",
  "kind",
  "actorId",
  "scopes",
  "metadata",
  "expireTime",
  "revokeTime",
  "disableTime",
  "allowedCidrs",
  "restrictedToActorIds",
  "rateLimits",
  "quotas",
] as const satisfies readonly (keyof VerifiableKey)[];

export const KEY_COLUMNS = [
  ...VERIFIABLE_KEY_COLUMNS,
  "name",
  "hint",
  "createTime",
  "updateTime",
  "lastUsedTime",
  "rotateTime",
  "revocationReason",
  "revocationDescription",
  "disableReason",
  "createdBy",
  "revokedBy",
  "disabledBy",
  "hashAlgorithm",
  "adoptBeforeTime",
  "adoptTime",
] as const satisfies readonly (keyof ApiKey)[];

export interface SecretsRow {
  readonly secretVersion: number;
  readonly digest: Buffer;
  readonly digestKeyId: string;
  readonly previousSecrets: readonly {
    readonly version: number;
    readonly digest: string;
    readonly digest_key_id: string;
    readonly expire_time: string;
  }[];
  /** Null unless only a hash of the raw key is known. */
  readonly hashSchemeId: number | null;
  readonly hashParameters: string | null;
}

const SECRETS_COLUMNS = [
  "secretVersion",
  "digest",
  "digestKeyId",
  "previousSecrets",
  "hashSchemeId",
  "hashParameters",
] as const satisfies readonly (keyof SecretsRow)[];

export const STORED_KEY_COLUMNS = [...KEY_COLUMNS, ...SECRETS_COLUMNS] as const;
export const VERIFIABLE_COLUMNS = [...VERIFIABLE_KEY_COLUMNS, ...SECRETS_COLUMNS] as const;

/** The prefix that a stored reason has, as in the API. */
const REASON_PREFIX = "REVOCATION_REASON_";

type StoredReason = `${typeof REASON_PREFIX}${RevocationReason}`;

export function storedReason(reason: RevocationReason): StoredReason {
  return `${REASON_PREFIX}${reason}`;
}

/** Columns whose values have another form than the fields of the domain. */
interface StoredLimits {
  readonly rateLimits: readonly StoredLimit[] | null;
  readonly quotas: readonly StoredQuota[] | null;
}

type WithLimits<K extends VerifiableKey> = Omit<K, keyof StoredLimits> & StoredLimits;

export type KeyRow = WithLimits<Omit<ApiKey, "revocationReason">> & {
  readonly revocationReason: StoredReason | null;
};

export type VerifiableRow = WithLimits<VerifiableKey> &
  SecretsRow & { readonly actorRateLimits: readonly StoredLimit[] | null };

/** Returns the key in a row, which may have further columns. */
export function toApiKey(row: KeyRow): ApiKey {
  return keyOfRow(pick(row, KEY_COLUMNS));
}

/** Returns the key in a row without further columns. */
export function keyOfRow(row: KeyRow): ApiKey {
  const { revocationReason: reason } = row;
  return {
    ...row,
    ...limitsOfRow(row),
    revocationReason: reason && (reason.slice(REASON_PREFIX.length) as RevocationReason),
  };
}

export function toStoredKey(row: KeyRow & SecretsRow): StoredKey {
  return { key: toApiKey(row), secrets: toSecrets(row) };
}

/** The same with only the part of the key that verification needs. */
export function toVerifiable(row: VerifiableRow): VerifiableRecord {
  const { actorId, actorRateLimits } = row;
  return {
    key: { ...pick(row, VERIFIABLE_KEY_COLUMNS), ...limitsOfRow(row) },
    secrets: toSecrets(row),
    actorLimits: actorRateLimits === null ? undefined : { actorId, limits: actorRateLimits.map(fromStoredLimit) },
  };
}

function limitsOfRow({ rateLimits, quotas }: StoredLimits) {
  return { rateLimits: rateLimits?.map(fromStoredLimit) ?? null, quotas: quotas?.map(fromStoredQuota) ?? null };
}

function pick<R extends object, K extends keyof R>(row: R, columns: readonly K[]): Pick<R, K> {
  const picked: Partial<Pick<R, K>> = {};
  for (const column of columns) picked[column] = row[column];
  return picked as Pick<R, K>;
}

function toSecrets(row: SecretsRow): StoredKey["secrets"] {
  const { hashSchemeId, hashParameters } = row;
  const previous = row.previousSecrets.map(({ version, digest, digest_key_id, expire_time }) => ({
    version,
    digest: toDigest(digest_key_id, Buffer.from(digest, "hex")),
    expireTime: parseTime(expire_time),
  }));
  const current = { version: row.secretVersion, digest: toDigest(row.digestKeyId, row.digest), expireTime: null };
  if (hashSchemeId === null) return [current, ...previous];
  return [{ ...current, hash: { schemeId: hashSchemeId, parameters: hashParameters } }, ...previous];
}

/** Bytes of HMAC-SHA-256. */
const DIGEST_LENGTH = 32;

/** A digest of another length is no digest: without this check, its secret would seem to have been rotated. */
function toDigest(keyId: string, digest: Buffer): SecretDigest {
  if (digest.length !== DIGEST_LENGTH)
    throw new TypeError(`a stored digest has ${digest.length} bytes instead of ${DIGEST_LENGTH}`);
  return { keyId, digest };
}
