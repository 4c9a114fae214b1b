import type { Fragment, Sql } from "postgres";
import type { KeyKind } from "../../src/domain/key.ts";

/** What the seeded keys are like. */
export interface RowShape {
  /** Of all keys. */
  readonly count: number;
  /** Actors there are; a tenth of the keys are of the most frequent one, with 1000 actors a three-thousandth of the rarest. */
  readonly actors: number;
  /** Percentage of imported keys. */
  readonly importedPercent: number;
  /** Keys were made in the year before. */
  readonly now: Date;
}

/** 2^32 by the golden ratio. */
const MIXER = 2654435769;

export const YEAR = 365 * 86_400_000;

/** Parts of the whole, as the shape of a service that is in use for a year. */
const REVOKED = 0.05;
const EXPIRING = 0.2;
const EXPIRED_OF_EXPIRING = 1 / 3;
const USED = 0.5;

/** Which keys are imported: `rowsBetween` has the same. Multiplied so, places at any equal distance are mixed. */
export function kindOf(place: number, { importedPercent }: RowShape): KeyKind {
  return Math.imul(place, MIXER) >>> 0 < (importedPercent / 100) * 2 ** 32 ? "imported" : "issued";
}

/** When the key at this place was made, in milliseconds; the last one just before `now`. */
export function creationOf(place: number, { count, now }: RowShape): number {
  return now.getTime() - YEAR + Math.floor((place / count) * YEAR);
}

/**
 * The rows at the places `from` to `to`, made by the database: as a table `(n, key_id, kind, …)` of the columns of `api_keys`
 * that have no default. A row of the same place in `made`, `(n, key_id, digest, digest_key_id, hint)`, gives it a real
 * credential; such a key is not revoked and does not expire. All that is random of a row follows from its place.
 */
export function rowsBetween(sql: Sql, from: number, to: number, made: Fragment, shape: RowShape): Fragment {
  const start = sql`${shape.now.toISOString()}::text::timestamptz - interval '365 days'`;
  return sql`
    SELECT n, coalesce(made.key_id, ${timeOrdered(sql)}) AS key_id,
      CASE WHEN (n * ${MIXER}::int8 & ${2 ** 32 - 1}::int8) < ${(shape.importedPercent / 100) * 2 ** 32}::float8
        THEN 'imported' ELSE 'issued' END AS kind,
      (ARRAY['build', 'deploy', 'backup', 'metrics', 'billing', 'mobile', 'partner', 'report'])[1 + n % 8] || '-' || n AS name,
      'actor-' || floor(${shape.actors}::int * power(${unit(sql, 1)}, 3)) AS actor_id,
      ARRAY['service' || floor(20 * power(${unit(sql, 2)}, 2)) || '.read', 'region' || n % 5 || '.use'] AS scopes,
      jsonb_build_object('team', 'team-' || floor(200 * power(${unit(sql, 3)}, 2))) AS metadata,
      coalesce(made.hint, 'kh_v1_…' || substr(md5(n::text), 1, 4)) AS hint, create_time,
      CASE WHEN made.n IS NULL AND ${unit(sql, 4)} < ${EXPIRING}::float8 THEN
        CASE WHEN ${unit(sql, 5)} < ${EXPIRED_OF_EXPIRING}::float8 THEN create_time + (now - create_time) * ${unit(sql, 6)}
          ELSE now + interval '1 hour' + interval '365 days' * ${unit(sql, 6)} END END AS expire_time,
      CASE WHEN ${unit(sql, 7)} < ${USED}::float8
        THEN date_trunc('minute', now - (now - create_time) * ${unit(sql, 8)}) END AS last_used_time,
      CASE WHEN made.n IS NULL AND ${unit(sql, 9)} < ${REVOKED}::float8
        THEN create_time + (now - create_time) * ${unit(sql, 10)} END AS revoke_time,
      coalesce(decode(made.digest, 'hex'), sha256(n::text::bytea)) AS digest,
      coalesce(made.digest_key_id, '0000000000000000') AS digest_key_id
    FROM (
      SELECT n, ${start} + interval '365 days' AS now,
        ${start} + n * ${YEAR}::int8 / ${shape.count}::int8 * interval '1 millisecond' AS create_time
      FROM generate_series(${from}::int8, ${to}::int8) AS n
    ) AS place LEFT JOIN ${made} AS made USING (n)`;
}

/** A UUID of version 7 for the time `create_time`. */
function timeOrdered(sql: Sql): Fragment {
  const time = sql`lpad(to_hex((extract(epoch FROM create_time) * 1000)::int8), 12, '0')`;
  return sql`overlay(overlay(overlay(md5(n::text) PLACING ${time} FROM 1) PLACING '7' FROM 13) PLACING 'a' FROM 17)::uuid`;
}

/** A number from 0 up to 1 that looks random, another one for each `use`. */
function unit(sql: Sql, use: number): Fragment {
  return sql`((hashint8extended(n, ${use}::int8) & 1048575) / 1048576.0::float8)`;
}
