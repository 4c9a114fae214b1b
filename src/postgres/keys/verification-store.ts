import type { Sql } from "postgres";
import type { ServerObserver } from "../../cluster/server-id.ts";
import type { KeyLookup } from "../../domain/key-lookup.ts";
import type { StoreLastUsed, Use } from "../../verify/last-used.ts";
import type { FindKeys } from "../../verify/reader.ts";
import { byteArray, hex } from "../connection/array-types.ts";
import type { Database } from "../connection/pool.ts";
import { serverId, type WithServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { toVerifiable, VERIFIABLE_COLUMNS, type VerifiableRow } from "./rows.ts";

/**
 * Finds keys for verification, any number of look-ups with one statement. The statement returns the identity of its server, because a
 * connection may lead to a former primary or a lagging standby.
 */
export function createFindKeys(database: Database, feed: ServerObserver): FindKeys {
  return async (lookups) => {
    const expected = feed.server;
    const ids = lookups.flatMap((lookup) => lookup.keyId ?? []);
    const digests = lookups.flatMap(digestsOf);
    const isByHash = lookups.some(({ hashes }) => hashes !== undefined);
    const found = await database.run((sql) => findRows(sql, ids, digests, isByHash), "keys.find");
    feed.requireServer(found[0]?.server ?? "", expected);
    const byId = new Map(found.map((row) => [row.keyId, row]));
    const byDigest = new Map(found.flatMap((row) => namesOf(row).map((name) => [name, row] as const)));
    return lookups.map((lookup) => {
      const candidates = [
        lookup.keyId === null ? undefined : byId.get(lookup.keyId),
        ...digestsOf(lookup).map((digest) => byDigest.get(digest)),
      ];
      // The digest and the prefix of a key may both be looked up.
      return [...new Set(candidates.filter((row) => row !== undefined))].map(toVerifiable);
    });
  };
}

function digestsOf({ digests, hashes = [] }: KeyLookup): string[] {
  return [...digests, ...hashes].map(hex);
}

/** Returns the digests by which a row is found: besides that of its secret, those of its prefix if that is all that shows. */
function namesOf({ kind, digest, prefixDigests }: FoundRow): string[] {
  if (kind !== "imported") return [];
  return [hex(digest), ...(prefixDigests ?? []).map((one) => one.digest)];
}

/** A statement that finds no key returns one row with the server alone. */
type FoundRow = WithServer<VerifiableRow> & {
  /** Hexadecimal; present for a key with a slow hash. */
  readonly prefixDigests?: readonly { readonly digest: string }[] | null;
};

/** Each condition uses one index (migration 0006). */
function findRows(
  sql: Sql,
  ids: readonly string[],
  digests: readonly string[],
  isByHash: boolean,
): PromiseLike<FoundRow[]> {
  const prefixes = sql`, CASE WHEN hash_parameters IS NOT NULL THEN other_digests END AS prefix_digests`;
  const byDigest = sql`ARRAY (SELECT key_id FROM raw_key_digests WHERE digest = ANY ${byteArray(sql, digests)})`;
  // Not a join: by statistics from when the table was empty, one would read all of it.
  const ofActor = sql`(
    SELECT jsonb_build_object('rate_limits', actors.rate_limits, 'quotas', actors.quotas)
    FROM actors WHERE actors.actor_id = api_keys.actor_id) AS actor_limits`;
  return sql<FoundRow[]>`
    SELECT ${serverId(sql)} AS server, ${sql(VERIFIABLE_COLUMNS)}, ${ofActor} ${isByHash ? prefixes : sql``} FROM (VALUES (1)) AS one LEFT JOIN api_keys
    ON key_id = ANY (${[...ids]}::uuid[] ${digests.length === 0 ? sql`` : sql`|| ${byDigest}`})`;
}

/**
 * Returns a function that advances `last_used_time`; it never moves it back. The keys are locked in the order of their ids, as by every
 * statement that locks several: otherwise two of them could deadlock. They are found by an array, not by a join, for the reason given at `updateRow`.
 */
export function createLastUsedStore(database: Database): StoreLastUsed {
  return async (uses, minute) => {
    await database.run((sql) => touchKeys(sql, idsOf(uses), minute));
    const detailed = uses.filter(({ oldSecret, address }) => oldSecret !== null || address !== null);
    if (detailed.length > 0) await database.run((sql) => touchDetails(sql, detailed, minute));
  };
}

function touchKeys(sql: Sql, keyIds: readonly string[], minute: Date) {
  return sql`
    WITH older AS (
      SELECT key_id FROM api_keys
      WHERE key_id = ANY (${[...keyIds]}::uuid[]) AND (last_used_time IS NULL OR last_used_time < ${minute}) AND ${ownSession(sql)}
      ORDER BY key_id FOR NO KEY UPDATE
    )
    UPDATE api_keys SET last_used_time = ${minute} WHERE key_id = ANY (ARRAY (SELECT key_id FROM older))`;
}

/** Stores addresses, unless the key was used in a later minute, and uses of secrets that are in `previous_secrets`. */
function touchDetails(sql: Sql, uses: readonly Use[], minute: Date) {
  const used = sql`((SELECT uses FROM details) -> key_id::text)`;
  return sql`
    WITH details AS (SELECT ${sql.json(detailsOf(uses))}::jsonb AS uses), locked AS (
      SELECT key_id FROM api_keys
      WHERE key_id = ANY (${idsOf(uses)}::uuid[]) AND ${ownSession(sql)}
        AND (${used} -> 'secrets' <> '[]' OR last_used_address IS DISTINCT FROM ${used} ->> 'address')
      ORDER BY key_id FOR NO KEY UPDATE
    )
    UPDATE api_keys SET
      last_used_address = CASE WHEN last_used_time > ${minute} THEN last_used_address ELSE coalesce(${used} ->> 'address', last_used_address) END,
      secret_uses = (
        SELECT jsonb_object_agg(version, greatest((secret_uses ->> version)::timestamptz, CASE WHEN is_used THEN ${minute}::timestamptz END))
        FROM jsonb_to_recordset(previous_secrets) AS secret (version text),
        LATERAL (SELECT ${used} -> 'secrets' ? version AS is_used) AS one WHERE is_used OR secret_uses ? version)
    WHERE key_id = ANY (ARRAY (SELECT key_id FROM locked))`;
}

function idsOf(uses: readonly Use[]): string[] {
  return [...new Set(uses.map(({ keyId }) => keyId))];
}

/** Returns the last address of each key, and the versions of the older secrets that were used. */
function detailsOf(uses: readonly Use[]) {
  const details: Record<string, { address: string | null; secrets: string[] }> = {};
  for (const { keyId, oldSecret, address } of uses) {
    details[keyId] ??= { address: null, secrets: [] };
    details[keyId].address = address ?? details[keyId].address;
    if (oldSecret !== null) details[keyId].secrets.push(String(oldSecret));
  }
  return details;
}
