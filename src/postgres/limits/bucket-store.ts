import type { Sql } from "postgres";
import type { Grant, GrantRequest, GrantTokens, Return, ReturnTokens } from "../../limits/grants.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** The buckets of limits, which all nodes share. */
export interface BucketStore {
  readonly grantTokens: GrantTokens;
  readonly returnTokens: ReturnTokens;
  /** Deletes buckets of which nothing is used: a missing one is full. */
  readonly removeEmpty: () => Promise<void>;
}

export function createBucketStore(database: Database): BucketStore {
  return {
    grantTokens: async (requests) => {
      const { grants } = firstRow(await database.run((sql) => grant(sql, requests), "limits.grant"));
      const found = new Map(grants.map(([bucket, ...values]) => [bucket, toGrant(values)]));
      return requests.map(({ bucket }) => found.get(bucket) ?? NOTHING);
    },
    returnTokens: async (returns) => void (await database.run((sql) => takeBack(sql, returns), "limits.return")),
    removeEmpty: async () => void (await database.run(removeEmpty)),
  };
}

/** Granted; level; reset time and milliseconds until it, null for a rate limit. */
type GrantValues = [granted: number, level: number, resetTime: number | null, resetAfter: number | null];

/** Without a row for a request, nothing is granted. */
const NOTHING: Grant = { granted: 0, level: Number.POSITIVE_INFINITY };

function toGrant([granted, level, resetTime, resetAfter]: GrantValues): Grant {
  if (resetTime === null || resetAfter === null) return { granted, level };
  return { granted, level, reset: { time: resetTime, after: resetAfter } };
}

/**
 * Grants tokens of any number of buckets with one statement, which locks them in the order of their names. The clock of the database is read
 * when a row is locked. A bucket drains by it, and stays as full as it is if it steps back; that of a quota is emptied when its period has
 * ended. An existing bucket grants by its own limit, which the transaction that changes a limit has written (migration 0038).
 */
function grant(sql: Sql, requests: readonly GrantRequest[]): PromiseLike<{ grants: [string, ...GrantValues][] }[]> {
  const sorted = requests.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1));
  // JSON: encoding arrays, and decoding rows, takes half as much CPU time again.
  const rows = sorted.map(({ calendar, ...request }) => ({
    ...request,
    period: calendar?.period,
    anchor: calendar && anchorText(calendar.anchorTime),
  }));
  return sql`
    WITH granted AS (
      INSERT INTO limit_buckets AS stored (bucket, burst, rate, period, anchor_time, granted, level, update_time, reset_time)
      SELECT bucket, burst, rate, period, anchor, fitting, greatest(0, owed + fitting), now, quota_period_end(now, period, anchor)
      FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS request
        (bucket text, wanted integer, owed integer, burst integer, rate float8, period text, anchor timestamptz),
      LATERAL (SELECT clock_timestamp() AS now WHERE bucket IS NOT NULL OFFSET 0) AS clock,
      LATERAL (SELECT greatest(0, least(wanted, burst - owed)) AS fitting) AS free
      WHERE ${ownSession(sql)}
      ON CONFLICT (bucket) DO UPDATE SET (granted, level, update_time, reset_time) = (
        SELECT more, drained + owed + more, now, reset
        FROM (SELECT clock_timestamp() AS now, excluded.level - excluded.granted AS owed OFFSET 0) AS clock,
        LATERAL (
          SELECT CASE WHEN stored.reset_time > now THEN stored.reset_time ELSE quota_period_end(now, stored.period, stored.anchor_time) END AS reset,
            CASE WHEN stored.reset_time <= now THEN 0
            ELSE greatest(0, stored.level - stored.rate * greatest(0, extract(epoch FROM now - stored.update_time)::float8 * 1000)) END AS drained
        ) AS before,
        LATERAL (SELECT greatest(0, least(excluded.granted, floor(stored.burst - drained - owed)))::integer AS more) AS free
      )
      RETURNING bucket, granted, level, extract(epoch FROM reset_time) * 1000 AS reset_time,
        extract(epoch FROM reset_time - update_time) * 1000 AS reset_after
    )
    SELECT coalesce(json_agg(json_build_array(bucket, granted, level, reset_time, reset_after)), '[]') AS grants FROM granted`;
}

function anchorText(time: number): string {
  return new Date(time).toISOString();
}

function takeBack(sql: Sql, returns: readonly Return[]): PromiseLike<unknown> {
  const sorted = returns.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1));
  return sql`
    WITH returned AS (
      SELECT bucket, tokens::integer AS tokens, ends::timestamptz AS ends FROM unnest(
        ${sorted.map(({ bucket }) => bucket)}::text[], ${sorted.map(({ tokens }) => `${tokens}`)}::text[],
        ${sorted.map(({ resetTime }) => anchorText(resetTime))}::text[]) AS texts (bucket, tokens, ends)
      WHERE ${ownSession(sql)}
    ), locked AS (
      SELECT bucket FROM limit_buckets JOIN returned USING (bucket) ORDER BY bucket FOR NO KEY UPDATE OF limit_buckets
    )
    UPDATE limit_buckets AS stored SET level = greatest(0, level - tokens) FROM returned
    WHERE stored.bucket = returned.bucket AND stored.bucket IN (SELECT bucket FROM locked) AND stored.reset_time = ends`;
}

/** Not before all leases have ended. */
function removeEmpty(sql: Sql): PromiseLike<unknown> {
  return sql`
    DELETE FROM limit_buckets WHERE ${ownSession(sql)} AND update_time < clock_timestamp() - interval '1 hour' AND CASE
      WHEN reset_time IS NULL THEN level <= rate * extract(epoch FROM clock_timestamp() - update_time)::float8 * 1000
      ELSE reset_time < clock_timestamp() - interval '1 hour' END`;
}
