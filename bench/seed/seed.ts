import type { Fragment, Sql } from "postgres";
import { v7 as uuidv7 } from "uuid";
import type { StoredLimit } from "../../src/postgres/keys/stored-limits.ts";
import { credentialMaker, type MadeCredential, type MakeCredential, type SeededCredential } from "./credentials.ts";
import { creationOf, kindOf, type RowShape, rowsBetween } from "./rows.ts";

export interface SeedOptions extends Partial<RowShape> {
  readonly count: number;
  readonly now: Date;
  /** Number of keys, spread evenly over all, that get a real credential. Needs `root`. */
  readonly credentials?: number;
  /** The root secret of the service that verifies them. */
  readonly root?: Uint8Array;
  /** Those of each key; by default none. */
  readonly rateLimits?: readonly StoredLimit[];
}

/** Rows per statement, few enough for the statement timeout. */
const CHUNK = 20_000;

/**
 * Seeds the empty table of a migrated database with keys like those of a service after a year, oldest first, and analyzes it. Returns the
 * real credentials, oldest first. `sql` may have any number of connections.
 */
export async function seedKeys(sql: Sql, options: SeedOptions): Promise<SeededCredential[]> {
  const shape: RowShape = { actors: 1000, importedPercent: 30, isAdverse: false, ...options };
  const makeAt = credentialPlaces(shape, options);
  const made: SeededCredential[] = [];
  for (let from = 0; from < shape.count; from += CHUNK) {
    const to = Math.min(from + CHUNK, shape.count) - 1;
    const credentials = makeAt(from, to);
    await insertRows(sql, rowsBetween(sql, from, to, table(sql, credentials), shape), options.rateLimits);
    for (const { credential, keyId, kind } of credentials) made.push({ credential, keyId, kind });
  }
  await sql`VACUUM ANALYZE api_keys`;
  return made;
}

interface PlacedCredential extends MadeCredential {
  readonly place: number;
}

/** Returns a function that makes the credentials of the rows `from` to `to`. */
function credentialPlaces(shape: RowShape, { credentials = 0, root }: SeedOptions) {
  if (credentials === 0) return () => [];
  if (root === undefined || credentials > shape.count)
    throw new RangeError("credentials need a root secret, and a key for each");
  const make = credentialMaker(root);
  return (from: number, to: number): PlacedCredential[] => {
    const first = Math.ceil((from * credentials) / shape.count);
    const end = Math.ceil(((to + 1) * credentials) / shape.count);
    return Array.from({ length: end - first }, (_, index) =>
      makeOne(make, Math.floor(((first + index) * shape.count) / credentials), shape),
    );
  };
}

function makeOne(make: MakeCredential, place: number, shape: RowShape): PlacedCredential {
  return { place, ...make(uuidv7({ msecs: creationOf(place, shape) }), kindOf(place, shape)) };
}

function table(sql: Sql, made: readonly PlacedCredential[]): Fragment {
  const rows = made.map(({ place, keyId, digest, digestKeyId, hint }) => [place, keyId, digest, digestKeyId, hint]);
  return sql`(
    SELECT (row ->> 0)::int8 AS n, (row ->> 1)::uuid AS key_id, row ->> 2 AS digest, row ->> 3 AS digest_key_id, row ->> 4 AS hint
    FROM jsonb_array_elements(${sql.json(rows)}) AS row)`;
}

async function insertRows(sql: Sql, rows: Fragment, rateLimits?: readonly StoredLimit[]): Promise<void> {
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time,
      last_used_time, revoke_time, revocation_reason, digest, digest_key_id, rate_limits)
    SELECT key_id, kind, name, actor_id, scopes, metadata, hint, create_time, coalesce(revoke_time, create_time),
      expire_time, last_used_time, revoke_time,
      CASE WHEN revoke_time IS NOT NULL THEN 'REVOCATION_REASON_SUPERSEDED' END, digest, digest_key_id,
      ${rateLimits === undefined ? null : JSON.stringify(rateLimits)}::text::jsonb
    FROM (${rows}) AS seeded ORDER BY n`;
}
