-- Usage: how often each key was verified, by hour and outcome (docs/usage.md). Hours are in UTC, by the clock of the database.

-- One row per key, day and outcome. A row per hour would take up to ten times the space.
CREATE TABLE key_usage (
  key_id uuid NOT NULL,
  -- The sum of `hours`.
  count bigint NOT NULL,
  day date NOT NULL,
  -- VALID, or why the credential was rejected. New outcomes need no migration.
  outcome text COLLATE "C" NOT NULL,
  -- The counts with the hours of the day, 0 to 23, as subscripts. Null: none.
  hours bigint[] NOT NULL,
  PRIMARY KEY (key_id, day, outcome)
) PARTITION BY RANGE (day);

-- Days that are older than the retention.
CREATE TABLE key_usage_daily (
  key_id uuid NOT NULL,
  count bigint NOT NULL,
  day date NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  PRIMARY KEY (key_id, day, outcome)
) PARTITION BY RANGE (day);

-- One row, whose lock serializes the maintenance.
CREATE TABLE usage_log (
  -- The first day of which `key_usage` is the source; earlier days are in `key_usage_daily`.
  first_day date NOT NULL,
  -- The last key of this day that was copied; null: none.
  copied_key_id uuid
);
INSERT INTO usage_log VALUES ((now() AT TIME ZONE 'UTC')::date);

-- The last flush of each process.
CREATE TABLE usage_flushes (
  process_id uuid PRIMARY KEY,
  flush_id bigint NOT NULL,
  time timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Adds counts to the current hour, and returns whether it did: not if a flush with this id or a later one is already committed, as when its
-- response was lost. A concurrent flush of the same process waits for the row in usage_flushes. Rows are locked in the order of their keys.
CREATE FUNCTION usage_flush(process uuid, flush bigint, key_ids uuid[], outcomes text[], counts bigint[]) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER AS $$
DECLARE
  clock CONSTANT timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  today CONSTANT date := clock::date;
  this_hour CONSTANT integer := extract(hour FROM clock);
BEGIN
  INSERT INTO usage_flushes AS last VALUES (process, flush, clock_timestamp())
  ON CONFLICT (process_id) DO UPDATE SET (flush_id, time) = (excluded.flush_id, excluded.time) WHERE last.flush_id < excluded.flush_id;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO key_usage AS stored (key_id, count, day, outcome, hours)
  SELECT key_id, n, today, outcome, array_fill(n, ARRAY[1], ARRAY[this_hour])
  FROM unnest(key_ids, outcomes, counts) AS added (key_id, outcome, n) ORDER BY key_id, outcome
  ON CONFLICT (key_id, day, outcome) DO UPDATE
  SET count = stored.count + excluded.count, hours[this_hour] = coalesce(stored.hours[this_hour], 0) + excluded.count;
  RETURN true;
END
$$;

-- Creates a partition without blocking reads and writes of the table: ATTACH locks less than PARTITION OF.
CREATE FUNCTION usage_partition(parent text, name text, first_day date, end_day date) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF to_regclass(name) IS NULL THEN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH (fillfactor = 80)', name, parent);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, first_day, end_day);
  END IF;
END
$$;

-- Drops the partitions that end by this day. Skips one that is in use, until the next run.
CREATE FUNCTION usage_drop(parent text, end_day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  old name;
BEGIN
  FOR old IN
    SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = to_regclass(parent) AND substring(pg_get_expr(relpartbound, inhrelid) FROM 'TO \(''([0-9-]+)''\)')::date <= end_day
    ORDER BY relname
  LOOP
    EXECUTE format('DROP TABLE %I', old);
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  NULL;
END
$$;

-- Creates the partitions of the next days; copies at most max_rows rows of the oldest day that is over the retention; drops the partitions of days that
-- are copied, and daily counts of more than two years ago. Returns whether it should be called again. One node at a time; others skip it.
CREATE FUNCTION usage_maintain(retention interval, max_rows integer) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '1s' AS $$
DECLARE
  today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
  -- A day is copied only when no flush can still add to it: two days after it began, at the earliest.
  oldest CONSTANT date := today - greatest(2, ceil(extract(epoch FROM retention) / 86400)::integer);
  log usage_log;
  last uuid;
  copied integer;
BEGIN
  IF retention IS NULL OR retention NOT BETWEEN '1 day' AND '400 days' THEN
    RAISE EXCEPTION 'the retention % is not from 1 to 400 days', retention USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT * INTO log FROM usage_log FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  FOR ahead IN 0..3 LOOP
    PERFORM usage_partition('key_usage', 'key_usage_' || to_char(today + ahead, 'YYYYMMDD'), today + ahead, today + ahead + 1);
  END LOOP;
  IF log.first_day >= oldest THEN
    PERFORM usage_drop('key_usage', log.first_day);
    PERFORM usage_drop('key_usage_daily', (today - interval '2 years')::date);
    DELETE FROM usage_flushes WHERE time < clock_timestamp() - interval '7 days';
    RETURN false;
  END IF;
  PERFORM usage_partition('key_usage_daily', 'key_usage_daily_' || to_char(log.first_day, 'YYYYMM'),
    date_trunc('month', log.first_day::timestamp)::date, (date_trunc('month', log.first_day::timestamp) + interval '1 month')::date);
  WITH source AS (
    SELECT key_id, count, day, outcome FROM key_usage
    WHERE day = log.first_day AND (log.copied_key_id IS NULL OR key_id > log.copied_key_id) ORDER BY key_id LIMIT greatest(max_rows, 100)
  ), complete AS (
    -- The last key may have more rows than fit: it is copied with the next ones, unless it is alone.
    SELECT * FROM source WHERE (SELECT count(*) FROM source) < greatest(max_rows, 100) OR key_id < (SELECT key_id FROM source ORDER BY key_id DESC LIMIT 1)
  ), stored AS (
    INSERT INTO key_usage_daily (key_id, count, day, outcome) SELECT key_id, count, day, outcome FROM complete RETURNING key_id
  )
  SELECT count(*), (SELECT key_id FROM stored ORDER BY key_id DESC LIMIT 1) INTO copied, last FROM stored;
  IF copied = 0 THEN
    UPDATE usage_log SET first_day = log.first_day + 1, copied_key_id = NULL;
  ELSE
    UPDATE usage_log SET copied_key_id = last;
  END IF;
  RETURN true;
END
$$;

DO $$
DECLARE
  signature regprocedure;
BEGIN
  FOREACH signature IN ARRAY ARRAY['usage_flush(uuid, bigint, uuid[], text[], bigint[])', 'usage_partition(text, text, date, date)',
    'usage_drop(text, date)', 'usage_maintain(interval, integer)']::regprocedure[]
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', signature, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET TimeZone = ''UTC''', signature);
    EXECUTE format('ALTER FUNCTION %s SET DateStyle = ''ISO''', signature);
  END LOOP;
END
$$;
SELECT usage_maintain('90 days', 1);
