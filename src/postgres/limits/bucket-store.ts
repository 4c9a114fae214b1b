import type { Grant, GrantTokens } from "../../limits/grants.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** The buckets of limits, which all nodes share. */
export interface BucketStore {
  readonly grantTokens: GrantTokens;
  /** Deletes buckets that are empty: a missing one is, too. */
  readonly removeEmpty: () => Promise<void>;
}

export function createBucketStore(database: Database): BucketStore {
  return { grantTokens: granting(database), removeEmpty: () => removeEmpty(database) };
}

/** In one statement, whatever a lease of the past hour may have been: it has ended. */
async function removeEmpty(database: Database): Promise<void> {
  await database.run(
    (sql) => sql`
      DELETE FROM limit_buckets
      WHERE update_time < clock_timestamp() - interval '1 hour'
        AND level <= rate * extract(epoch FROM clock_timestamp() - update_time)::float8 * 1000 AND ${ownSession(sql)}`,
  );
}

/**
 * Returns a function that grants tokens, for any number of buckets with one statement, which locks them in the order of their names. A bucket
 * drains by the clock of the database, read when its row is locked; if that clock steps back, it stays as full as it is. A limit that was
 * changed keeps what has been used of it, at most its new burst.
 */
function granting(database: Database): GrantTokens {
  return async (requests) => {
    const sorted = requests.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1));
    const names = sorted.map(({ bucket }) => bucket);
    const numbers = (field: "wanted" | "owed" | "burst" | "rate") => sorted.map((request) => String(request[field]));
    const rows = await database.run(
      (sql) => sql<(Grant & { readonly bucket: string })[]>`
        INSERT INTO limit_buckets AS stored (bucket, burst, rate, granted, level, update_time)
        SELECT bucket, burst, rate, fitting, owed + fitting, clock_timestamp()
        FROM unnest(${names}::text[], ${numbers("wanted")}::text[], ${numbers("owed")}::text[], ${numbers("burst")}::text[],
          ${numbers("rate")}::text[]) AS texts (bucket, wanted_text, owed_text, burst_text, rate_text),
        LATERAL (SELECT owed_text::integer AS owed, burst_text::integer AS burst, rate_text::float8 AS rate) AS request,
        LATERAL (SELECT greatest(0, least(wanted_text::integer, burst - owed)) AS fitting) AS free
        WHERE ${ownSession(sql)}
        ON CONFLICT (bucket) DO UPDATE SET (burst, rate, granted, level, update_time) = (
          SELECT excluded.burst, excluded.rate, more, drained + owed + more, now
          FROM (SELECT clock_timestamp() AS now, excluded.level - excluded.granted AS owed OFFSET 0) AS clock,
          LATERAL (
            SELECT greatest(0, stored.level - stored.rate * greatest(0, extract(epoch FROM now - stored.update_time)::float8 * 1000)) AS level
          ) AS before,
          LATERAL (
            SELECT CASE WHEN excluded.burst = stored.burst THEN level ELSE least(level, excluded.burst) END AS drained
          ) AS kept,
          LATERAL (SELECT greatest(0, least(excluded.granted, floor(excluded.burst - drained - owed)))::integer AS more) AS free
        )
        RETURNING bucket, granted, level::numeric AS level`,
      "limits.grant",
    );
    const found = new Map(rows.map((row) => [row.bucket, row]));
    return requests.map(({ bucket }) => found.get(bucket) ?? NOTHING);
  };
}

/** Without a row for a request, nothing is granted. */
const NOTHING: Grant = { granted: 0, level: Number.POSITIVE_INFINITY };
