import type {
  ApiKey,
  PreviousSecret,
  RevocationReason,
  SecretDigest,
  StoredKey,
  VerifiableKey,
} from "../../domain/key.ts";
import type { VerifiableRecord } from "../../domain/key-lookup.ts";
import { limitsOf, type RateLimit } from "../../domain/rate-limit.ts";
import { memoizeFirst } from "../../lib/memoize.ts";
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
  "lastUsedAddress",
  "previousSecrets",
  "secretUses",
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
] as const satisfies readonly (keyof KeyRow)[];

/** A secret in its grace period. Releases before 0.4 store no hint and time. */
interface StoredSecret {
  readonly version: number;
  readonly digest: string;
  readonly digest_key_id: string;
  readonly expire_time: string;
  readonly hint?: string;
  readonly create_time?: string;
}

export interface SecretsRow {
  readonly secretVersion: number;
  readonly digest: Buffer;
  readonly digestKeyId: string;
  readonly previousSecrets: readonly StoredSecret[];
  /** Null unless only a hash of the raw key is known. */
  readonly hashSchemeId: number | null;
  readonly hashParameters: string | null;
}

const SECRETS_COLUMNS = [
  "secretVersion",
  "digest",
  "digestKeyId",
  "hashSchemeId",
  "hashParameters",
] as const satisfies readonly (keyof SecretsRow)[];

export const STORED_KEY_COLUMNS = [...KEY_COLUMNS, ...SECRETS_COLUMNS] as const;
export const VERIFIABLE_COLUMNS = [...VERIFIABLE_KEY_COLUMNS, "previousSecrets", ...SECRETS_COLUMNS] as const;

/** The prefix that a stored reason has, as in the API. */
const REASON_PREFIX = "REVOCATION_REASON_";

type StoredReason = `${typeof REASON_PREFIX}${RevocationReason}`;

export function storedReason(reason: RevocationReason): StoredReason {
  return `${REASON_PREFIX}${reason}`;
}

/** Columns whose values have another form than the fields of the domain. */
export interface StoredLimits {
  readonly rateLimits: readonly StoredLimit[] | null;
  readonly quotas: readonly StoredQuota[] | null;
}

type WithLimits<K extends VerifiableKey> = Omit<K, keyof StoredLimits> & StoredLimits;

export type KeyRow = WithLimits<Omit<ApiKey, "revocationReason" | "previousSecrets">> & {
  readonly revocationReason: StoredReason | null;
  readonly previousSecrets: readonly StoredSecret[];
  /** When older secrets were last used, by their versions. */
  readonly secretUses: Readonly<Record<string, string>> | null;
};

export type VerifiableRow = WithLimits<VerifiableKey> & SecretsRow & { readonly actorLimits: StoredActorLimits | null };

/** The limits of the key's actor, as JSON. */
interface StoredActorLimits {
  readonly rate_limits: StoredLimits["rateLimits"];
  readonly quotas: StoredLimits["quotas"];
}

/** Returns the key in a row, which may have further columns. */
export function toApiKey(row: KeyRow): ApiKey {
  return keyOfRow(pick(row, KEY_COLUMNS));
}

/** Returns the key in a row without further columns. */
export function keyOfRow({ secretUses, ...row }: KeyRow): ApiKey {
  const { revocationReason: reason } = row;
  return {
    ...row,
    ...limitsOfRow(row),
    previousSecrets: row.previousSecrets.map((secret) => toPreviousSecret(secret, secretUses?.[secret.version])),
    revocationReason: reason && (reason.slice(REASON_PREFIX.length) as RevocationReason),
  };
}

export function toStoredKey(row: KeyRow & SecretsRow): StoredKey {
  return { key: toApiKey(row), secrets: toSecrets(row) };
}

/** The same with only the part of the key that verification needs. */
export function toVerifiable(row: VerifiableRow): VerifiableRecord {
  const { actorId, actorLimits: ofActor } = row;
  const limits = ofActor && limitsOf(limitsOfRow({ rateLimits: ofActor.rate_limits, quotas: ofActor.quotas }));
  return {
    key: { ...pick(row, VERIFIABLE_KEY_COLUMNS), ...limitsOfRow(row) },
    secrets: toSecrets(row),
    actorLimits: limits === null ? undefined : { actorId, limits },
  };
}

/** Returns the limits in a row of a key or an actor. */
export function limitsOfRow({ rateLimits, quotas }: StoredLimits) {
  return {
    rateLimits: rateLimits && rateLimitsOf(JSON.stringify(rateLimits)),
    quotas: quotas?.map(fromStoredQuota) ?? null,
  };
}

/** Rate limits occur in few combinations, as the same objects: what is derived from a limit is kept by its identity, and buckets retain it. */
const rateLimitsOf = memoizeFirst(4_096, (json): readonly RateLimit[] =>
  Object.freeze(JSON.parse(json).map((stored: StoredLimit) => Object.freeze(fromStoredLimit(stored)))),
);

/** Returns what a key shows of an older secret: nothing of its digest. */
function toPreviousSecret({ hint, create_time, expire_time }: StoredSecret, lastUsed?: string): PreviousSecret {
  return {
    hint: hint ?? null,
    createTime: create_time === undefined ? null : parseTime(create_time),
    expireTime: parseTime(expire_time),
    lastUsedTime: lastUsed === undefined ? null : parseTime(lastUsed),
  };
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
