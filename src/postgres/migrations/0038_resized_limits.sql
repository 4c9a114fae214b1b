-- A change of a limit writes the limit to its bucket, in the same transaction. So a statement of a node that does not know of the change yet can
-- neither change the bucket back nor be granted by the earlier limit (docs/limits.md). What is used is kept, of a rate limit at most the new burst.
--
-- Returns the buckets of the limits of an owner: {owner, rate_limits, quotas}.
CREATE FUNCTION buckets_of_limits(limits jsonb) RETURNS TABLE (bucket text, burst integer, rate float8, period text, anchor_time timestamptz)
LANGUAGE sql AS $$
  SELECT concat(limits ->> 'owner', '/', name), burst, quota / (rtrim("window", 's')::float8 * 1000), NULL, NULL::timestamptz
  FROM jsonb_to_recordset(nullif(limits -> 'rate_limits', 'null')) AS rate_limit (name text, quota float8, "window" text, burst integer)
  UNION ALL
  SELECT concat(limits ->> 'owner', '/', name, ':quota'), "limit", 0, replace(period, 'QUOTA_PERIOD_', ''), anchor_time
  FROM jsonb_to_recordset(nullif(limits -> 'quotas', 'null')) AS quota (name text, "limit" integer, period text, anchor_time timestamptz)
$$;

CREATE FUNCTION resize_limit_buckets(limits jsonb, earlier jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO limit_buckets AS stored (bucket, level, update_time, granted, burst, rate, period, anchor_time, reset_time)
  SELECT bucket, 0, clock_timestamp(), 0, burst, rate, period, anchor_time, quota_period_end(clock_timestamp(), period, anchor_time)
  FROM (
    -- Only what has changed: statements lock buckets in the order of their names, and an adjustment of a quota locks its bucket first.
    SELECT * FROM buckets_of_limits(limits) EXCEPT SELECT * FROM buckets_of_limits(earlier)
  ) AS changed ORDER BY bucket
  ON CONFLICT (bucket) DO UPDATE SET (burst, rate, period, anchor_time, level, update_time, reset_time) = (
    SELECT excluded.burst, excluded.rate, excluded.period, excluded.anchor_time,
      CASE WHEN stored.reset_time <= now THEN 0 WHEN excluded.burst = stored.burst OR excluded.rate = 0 THEN drained ELSE least(drained, excluded.burst) END,
      now,
      CASE WHEN (excluded.period, excluded.anchor_time) IS NOT DISTINCT FROM (stored.period, stored.anchor_time) AND stored.reset_time > now
      THEN stored.reset_time ELSE quota_period_end(now, excluded.period, excluded.anchor_time) END
    FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock,
    LATERAL (
      SELECT greatest(0, stored.level - stored.rate * greatest(0, extract(epoch FROM now - stored.update_time)::float8 * 1000)) AS drained
    ) AS before
  )
$$;

-- The arguments of the trigger are the kind of the owner and the column of its id.
CREATE FUNCTION limits_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  owner CONSTANT jsonb := jsonb_build_object('owner', concat(TG_ARGV[0], '/', to_jsonb(NEW) ->> TG_ARGV[1]));
BEGIN
  PERFORM resize_limit_buckets(to_jsonb(NEW) || owner, to_jsonb(OLD) || owner);
  RETURN NULL;
END
$$;

CREATE TRIGGER key_limits_changed AFTER UPDATE OF rate_limits, quotas ON api_keys
FOR EACH ROW WHEN ((NEW.rate_limits, NEW.quotas) IS DISTINCT FROM (OLD.rate_limits, OLD.quotas)) EXECUTE FUNCTION limits_changed('key', 'key_id');
-- The first limits of an actor may be others than those of a deleted one.
CREATE TRIGGER actor_limits_changed AFTER INSERT OR UPDATE ON actors FOR EACH ROW EXECUTE FUNCTION limits_changed('actor', 'actor_id');

-- Limits may have changed since they were last used.
SELECT resize_limit_buckets(to_jsonb(api_keys) || jsonb_build_object('owner', concat('key/', key_id)), NULL) FROM api_keys
WHERE rate_limits IS NOT NULL OR quotas IS NOT NULL;
SELECT resize_limit_buckets(to_jsonb(actors) || jsonb_build_object('owner', concat('actor/', actor_id)), NULL) FROM actors;

DO $$
DECLARE
  name text;
BEGIN
  REVOKE ALL ON FUNCTION buckets_of_limits(jsonb), resize_limit_buckets(jsonb, jsonb) FROM PUBLIC;
  FOREACH name IN ARRAY ARRAY['buckets_of_limits(jsonb)', 'resize_limit_buckets(jsonb, jsonb)', 'limits_changed()'] LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET TimeZone = ''UTC''', name);
  END LOOP;
END
$$;
