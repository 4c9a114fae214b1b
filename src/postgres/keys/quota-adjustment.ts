import type { SerializableParameter } from "postgres";
import type { Tag } from "../connection/fragments.ts";

/*
 * Adjustments of a quota of a key or an actor: the row has the last one, so that its change is audited and notifies all nodes, and the bucket
 * has the sum.
 */

type Parameters<N extends string> = Readonly<Record<N, SerializableParameter>>;

/** Returns the condition that a row has the quota. */
export function hasQuota<F>(sql: Tag<F>, quota: SerializableParameter): F {
  return sql`quotas @> jsonb_build_array(jsonb_build_object('name', ${quota}::text))`;
}

/** Returns an expression for the quotas of a row, with the adjustment of one. */
export function adjustedQuotas<F>(sql: Tag<F>, { quota, delta, now }: Parameters<"quota" | "delta" | "now">): F {
  return sql`(
    SELECT jsonb_agg(CASE WHEN quota ->> 'name' = ${quota}::text
      THEN quota || jsonb_build_object('adjust_time', ${now}::timestamptz, 'adjustment', ${delta}::integer) ELSE quota END ORDER BY place)
    FROM jsonb_array_elements(quotas) WITH ORDINALITY AS all_quotas (quota, place))`;
}

/**
 * Returns the item of WITH that adjusts the bucket of a quota, which the item `updated` has. A bucket whose period has ended begins the next one.
 * `owner` is an expression, such as `key/…`.
 */
export function adjustBucket<F>(sql: Tag<F>, owner: NoInfer<F>, { quota, delta }: Parameters<"quota" | "delta">): F {
  return sql`adjusted AS (
    INSERT INTO limit_buckets AS stored (bucket, level, update_time, granted, burst, rate, period, anchor_time, reset_time)
    SELECT concat(${owner}, '/', ${quota}::text, ':quota'), greatest(0, ${delta}::integer), clock_timestamp(), 0, one."limit", 0, one.unit,
      one.anchor_time, quota_period_end(clock_timestamp(), one.unit, one.anchor_time)
    FROM updated, jsonb_to_recordset(quotas) AS quota (name text, "limit" integer, period text, anchor_time timestamptz),
    LATERAL (SELECT "limit", replace(period, 'QUOTA_PERIOD_', '') AS unit, quota.anchor_time) AS one WHERE quota.name = ${quota}::text
    ON CONFLICT (bucket) DO UPDATE SET
      level = greatest(0, CASE WHEN stored.reset_time > excluded.update_time THEN stored.level ELSE 0 END + ${delta}::integer),
      reset_time = greatest(stored.reset_time, excluded.reset_time)
  ),`;
}
