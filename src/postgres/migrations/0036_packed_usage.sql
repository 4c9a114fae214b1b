-- Usage of closed days, in a quarter of the space: one row has the counts of 64 keys. A day closes an hour after its end; `key_usage` has later days.

-- One row per day and 64 keys in the order of their ids.
CREATE TABLE packed_usage (
  day date NOT NULL,
  -- The lowest of `key_ids`.
  first_key_id uuid NOT NULL,
  -- One element per key and outcome, like in the other arrays. All outcomes of a key are in one row.
  key_ids uuid[] NOT NULL,
  outcomes text[] COLLATE "C" NOT NULL,
  counts bigint[] NOT NULL,
  PRIMARY KEY (day, first_key_id)
) PARTITION BY RANGE (day);

-- The hours of a row of `packed_usage`, until the retention ends.
CREATE TABLE packed_usage_hours (
  day date NOT NULL,
  first_key_id uuid NOT NULL,
  -- For each element the counts of 24 hours. Null: none.
  hours bigint[][] NOT NULL,
  PRIMARY KEY (day, first_key_id)
) PARTITION BY RANGE (day);

-- Compressed in the row, which takes less space than values of their own (toast_tuple_target of the partitions).
ALTER TABLE packed_usage ALTER key_ids SET STORAGE MAIN, ALTER outcomes SET STORAGE MAIN, ALTER counts SET STORAGE MAIN;
ALTER TABLE packed_usage_hours ALTER hours SET STORAGE MAIN;
ALTER TABLE packed_usage ALTER key_ids SET STATISTICS 0, ALTER outcomes SET STATISTICS 0, ALTER counts SET STATISTICS 0;
ALTER TABLE packed_usage_hours ALTER hours SET STATISTICS 0;

-- The keys with the highest counts of each closed day.
CREATE TABLE top_usage (
  day date NOT NULL,
  -- Empty: any.
  outcome text COLLATE "C" NOT NULL,
  key_id uuid NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (day, outcome, key_id)
);

-- Verifications by hour, for queries that people write. Name a range of days. What verifications cost by a limit of their key or of its actor is
-- counted like an outcome with the name `units/` and that of the limit (docs/usage.md).
CREATE VIEW usage_by_hour WITH (security_invoker = true) AS
SELECT key_id, day, outcome, hour, hours[hour] AS count
FROM key_usage CROSS JOIN generate_series(0, 23) AS hour
WHERE hours[hour] IS NOT NULL AND day >= (SELECT first_day FROM usage_log) AND outcome NOT LIKE 'units/%'
UNION ALL
SELECT key_id, day, outcome, hour::integer - 1, count
FROM packed_usage JOIN packed_usage_hours USING (day, first_key_id)
CROSS JOIN unnest(key_ids, outcomes) WITH ORDINALITY AS entry (key_id, outcome, place)
CROSS JOIN unnest(hours[place:place]) WITH ORDINALITY AS of_hour (count, hour)
WHERE count IS NOT NULL AND day < (SELECT first_day FROM usage_log) AND outcome NOT LIKE 'units/%';
-- It needs the rights on its tables.
GRANT SELECT ON usage_by_hour TO PUBLIC;

DROP FUNCTION usage_partition(text, text, date, date);

-- Creates a partition without blocking reads and writes of the table: ATTACH locks less than PARTITION OF. Statistics of the elements of arrays would
-- take ANALYZE minutes, and no query needs them.
CREATE FUNCTION usage_partition(parent text, name text, first_day date, end_day date, options text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF to_regclass(name) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (%s)', name, parent, options);
    EXECUTE format('ALTER TABLE %I %s', name, (SELECT string_agg(format('ALTER %I SET STATISTICS 0', attname), ', ') FROM pg_attribute
      WHERE attrelid = to_regclass(parent) AND attndims > 0));
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, first_day, end_day);
  END IF;
END
$$;

-- Creates the partitions that a flush or the packing of a day needs.
CREATE FUNCTION usage_live_partition(day date) RETURNS void LANGUAGE sql AS $$
  SELECT usage_partition('key_usage', 'key_usage_' || to_char(day, 'YYYYMMDD'), day, day + 1, 'fillfactor = 80')
$$;

-- By month, and by week: planning takes long with a partition for each day of a query.
CREATE FUNCTION usage_packed_partitions(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  month CONSTANT timestamp := date_trunc('month', day::timestamp);
  week CONSTANT timestamp := date_trunc('week', day::timestamp);
BEGIN
  PERFORM usage_partition('packed_usage', 'packed_usage_' || to_char(month, 'YYYYMM'), month::date, (month + interval '1 month')::date,
    'toast_tuple_target = 128');
  PERFORM usage_partition('packed_usage_hours', 'packed_usage_hours_' || to_char(week, 'YYYYMMDD'), week::date, week::date + 7,
    'toast_tuple_target = 128');
END
$$;

-- Packs the counts of a day, of the keys after one, up to another. `top_usage` has no units: with limits of many names, its size would have no bound.
CREATE FUNCTION usage_pack(packed_day date, after_key_id uuid, last_key_id uuid) RETURNS void LANGUAGE sql AS $$
  WITH source AS (
    SELECT key_id, outcome, count, hours FROM key_usage
    WHERE day = packed_day AND key_id > after_key_id AND key_id <= last_key_id
  ), packed AS (
    SELECT (array_agg(key_id ORDER BY key_id))[1] AS first_key_id, array_agg(key_id) AS key_ids, array_agg(outcome) AS outcomes,
      array_agg(count) AS counts, array_agg(of_day) AS hours
    FROM (
      SELECT key_id, outcome, count, ARRAY (SELECT hours[hour] FROM generate_series(0, 23) AS hour) AS of_day,
        (dense_rank() OVER (ORDER BY key_id) - 1) / 64 AS place
      FROM source
    ) AS entry GROUP BY place
  ), stored AS (
    INSERT INTO packed_usage SELECT packed_day, first_key_id, key_ids, outcomes, counts FROM packed
  ), stored_hours AS (
    INSERT INTO packed_usage_hours SELECT packed_day, first_key_id, hours FROM packed
  ), verifications AS (
    SELECT outcome, key_id, count FROM source WHERE outcome NOT LIKE 'units/%'
  ), ranked AS (
    SELECT outcome, key_id, count, is_stored, row_number() OVER (PARTITION BY outcome ORDER BY count DESC, key_id) AS place FROM (
      SELECT outcome, key_id, count, false AS is_stored FROM verifications
      UNION ALL SELECT '', key_id, sum(count), false FROM verifications GROUP BY key_id
      UNION ALL SELECT outcome, key_id, count, true FROM top_usage WHERE day = packed_day
    ) AS candidate
  ), removed AS (
    DELETE FROM top_usage USING ranked
    WHERE day = packed_day AND (top_usage.outcome, top_usage.key_id) = (ranked.outcome, ranked.key_id) AND is_stored AND place > 1001
  )
  INSERT INTO top_usage SELECT packed_day, outcome, key_id, count FROM ranked WHERE NOT is_stored AND place <= 1001
$$;

-- Creates the partitions of the next days; packs at most about max_rows rows of the oldest day that is closed and not packed; drops the partitions of
-- days that are packed, hours that are over the retention, and counts of more than two years ago. Returns whether it should be called again. One node
-- at a time; others skip it.
CREATE OR REPLACE FUNCTION usage_maintain(retention interval, max_rows integer) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '1s'
AS $$
DECLARE
  clock CONSTANT timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  today CONSTANT date := clock::date;
  first_hours CONSTANT date := today - ceil(extract(epoch FROM retention) / 86400)::integer;
  log usage_log;
  packed uuid;
  last uuid;
BEGIN
  IF retention IS NULL OR retention NOT BETWEEN '1 day' AND '400 days' THEN
    RAISE EXCEPTION 'the retention % is not from 1 to 400 days', retention USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT * INTO log FROM usage_log FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM usage_live_partition(today + ahead) FROM generate_series(0, 3) AS ahead;
  -- After an hour, no flush still adds to the day.
  IF log.first_day >= (clock - interval '1 hour')::date THEN
    PERFORM usage_drop('key_usage', log.first_day);
    PERFORM usage_drop('packed_usage_hours', first_hours);
    PERFORM usage_drop('packed_usage', (today - interval '2 years')::date);
    DELETE FROM top_usage WHERE day < today - interval '2 years';
    DELETE FROM usage_flushes WHERE time < clock_timestamp() - interval '7 days';
    RETURN false;
  END IF;
  PERFORM usage_packed_partitions(log.first_day);
  packed := coalesce(log.copied_key_id, '00000000-0000-0000-0000-000000000000');
  SELECT key_id INTO last FROM key_usage WHERE day = log.first_day AND key_id > packed ORDER BY key_id OFFSET greatest(max_rows, 100) LIMIT 1;
  PERFORM usage_pack(log.first_day, packed, coalesce(last, 'ffffffff-ffff-ffff-ffff-ffffffffffff'));
  UPDATE usage_log SET first_day = log.first_day + (last IS NULL)::integer, copied_key_id = last;
  RETURN true;
END
$$;

-- Days that were copied by their counts alone are packed like others.
DO $$
BEGIN
  PERFORM usage_live_partition(day) FROM (SELECT DISTINCT day FROM key_usage_daily) AS copied;
  INSERT INTO key_usage (key_id, count, day, outcome, hours) SELECT key_id, count, day, outcome, '{}' FROM key_usage_daily ON CONFLICT DO NOTHING;
  UPDATE usage_log SET first_day = least(first_day, (SELECT min(day) FROM key_usage_daily)), copied_key_id = NULL;
  DROP TABLE key_usage_daily;
END
$$;

DO $$
DECLARE
  signature regprocedure;
BEGIN
  FOREACH signature IN ARRAY ARRAY['usage_partition(text, text, date, date, text)', 'usage_live_partition(date)', 'usage_packed_partitions(date)',
    'usage_pack(date, uuid, uuid)', 'usage_maintain(interval, integer)']::regprocedure[]
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', signature, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET TimeZone = ''UTC''', signature);
    EXECUTE format('ALTER FUNCTION %s SET DateStyle = ''ISO''', signature);
  END LOOP;
END
$$;
