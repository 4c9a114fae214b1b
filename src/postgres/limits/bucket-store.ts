import type { Sql } from "postgres";
import type { Grant, GrantRequest, GrantTokens, Return, ReturnTokens } from "../../limits/grants.ts";
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
      const rows = await database.run((sql) => grant(sql, requests), "limits.grant");
      const found = new Map(rows.map((row) => [row.bucket, toGrant(row)]));
      return requests.map(({ bucket }) => found.get(bucket) ?? NOTHING);
    },
    returnTokens: async (returns) => void (await database.run((sql) => takeBack(sql, returns), "limits.return")),
    removeEmpty: async () => void (await database.run(removeEmpty)),
  };
}

interface GrantRow {
  readonly bucket: string;
  readonly granted: number;
  readonly level: number;
  /** Milliseconds; null for a rate limit. */
  readonly resetTime: number | null;
  readonly resetAfter: number | null;
}

/** Without a row for a request, nothing is granted. */
const NOTHING: Grant = { granted: 0, level: Number.POSITIVE_INFINITY };

function toGrant({ granted, level, resetTime, resetAfter }: GrantRow): Grant {
  if (resetTime === null || resetAfter === null) return { granted, level };
  return { granted, level, reset: { time: resetTime, after: resetAfter } };
}

/**
 * Grants tokens of any number of buckets with one statement, which locks them in the order of their names. The clock of the database is read
 * when a row is locked. A bucket drains by it, and stays as full as it is if it steps back; that of a quota is emptied when its period has
 * ended. A limit that was changed keeps what has been used of it, a rate limit at most its new burst.
 */
function grant(sql: Sql, requests: readonly GrantRequest[]): PromiseLike<GrantRow[]> {
  const sorted = requests.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1));
  const texts = (textOf: (request: GrantRequest) => string) => sorted.map(textOf);
  return sql<GrantRow[]>`
    INSERT INTO limit_buckets AS stored (bucket, burst, rate, period, anchor_time, granted, level, update_time, reset_time)
    SELECT bucket, burst, rate, period, anchor, fitting, greatest(0, owed + fitting), now, quota_period_end(now, period, anchor)
    FROM unnest(
      ${texts(({ bucket }) => bucket)}::text[], ${texts(({ wanted }) => `${wanted}`)}::text[], ${texts(({ owed }) => `${owed}`)}::text[],
      ${texts(({ burst }) => `${burst}`)}::text[], ${texts(({ rate }) => `${rate}`)}::text[],
      ${texts(({ calendar }) => calendar?.period ?? "")}::text[], ${texts(({ calendar }) => anchorText(calendar?.anchorTime ?? 0))}::text[]
    ) AS texts (bucket, wanted_text, owed_text, burst_text, rate_text, period_text, anchor_text),
    LATERAL (
      SELECT owed_text::integer AS owed, burst_text::integer AS burst, rate_text::float8 AS rate, clock_timestamp() AS now,
        nullif(period_text, '') AS period, CASE WHEN period_text <> '' THEN anchor_text::timestamptz END AS anchor OFFSET 0
    ) AS request,
    LATERAL (SELECT greatest(0, least(wanted_text::integer, burst - owed)) AS fitting) AS free
    WHERE ${ownSession(sql)}
    ON CONFLICT (bucket) DO UPDATE SET (burst, rate, period, anchor_time, granted, level, update_time, reset_time) = (
      SELECT excluded.burst, excluded.rate, excluded.period, excluded.anchor_time, more, drained + owed + more, now, reset
      FROM (SELECT clock_timestamp() AS now, excluded.level - excluded.granted AS owed OFFSET 0) AS clock,
      LATERAL (
        SELECT CASE
          WHEN (excluded.period, excluded.anchor_time) IS NOT DISTINCT FROM (stored.period, stored.anchor_time) AND stored.reset_time > now
          THEN stored.reset_time ELSE quota_period_end(now, excluded.period, excluded.anchor_time) END AS reset
      ) AS calendar,
      LATERAL (
        SELECT CASE WHEN stored.reset_time <= now THEN 0
          ELSE greatest(0, stored.level - stored.rate * greatest(0, extract(epoch FROM now - stored.update_time)::float8 * 1000)) END AS level
      ) AS before,
      LATERAL (
        SELECT CASE WHEN excluded.burst = stored.burst OR excluded.rate = 0 THEN level ELSE least(level, excluded.burst) END AS drained
      ) AS kept,
      LATERAL (SELECT greatest(0, least(excluded.granted, floor(excluded.burst - drained - owed)))::integer AS more) AS free
    )
    RETURNING bucket, granted, level::numeric AS level, extract(epoch FROM reset_time) * 1000 AS reset_time,
      extract(epoch FROM reset_time - update_time) * 1000 AS reset_after`;
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
