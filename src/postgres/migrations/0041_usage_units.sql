-- Usage of limits: what verifications cost by a limit of their key or of its actor is counted like an outcome with the name `units/` and that of
-- the limit (docs/usage.md). What counts verifications leaves these rows out.

CREATE OR REPLACE VIEW usage_by_hour WITH (security_invoker = true) AS
SELECT key_id, day, outcome, hour, hours[hour] AS count
FROM key_usage CROSS JOIN generate_series(0, 23) AS hour
WHERE hours[hour] IS NOT NULL AND day >= (SELECT first_day FROM usage_log) AND outcome NOT LIKE 'units/%'
UNION ALL
SELECT key_id, day, outcome, hour::integer - 1, count
FROM packed_usage JOIN packed_usage_hours USING (day, first_key_id)
CROSS JOIN unnest(key_ids, outcomes) WITH ORDINALITY AS entry (key_id, outcome, place)
CROSS JOIN unnest(hours[place:place]) WITH ORDINALITY AS of_hour (count, hour)
WHERE count IS NOT NULL AND day < (SELECT first_day FROM usage_log) AND outcome NOT LIKE 'units/%';

-- The function of 0036. `top_usage` has no units: with limits of many names, its size would have no bound.
CREATE OR REPLACE FUNCTION usage_pack(packed_day date, after_key_id uuid, last_key_id uuid) RETURNS void LANGUAGE sql AS $$
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

-- CREATE OR REPLACE has removed the settings.
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION usage_pack(date, uuid, uuid) SET search_path = %I, pg_temp', current_schema());
  ALTER FUNCTION usage_pack(date, uuid, uuid) SET TimeZone = 'UTC';
  ALTER FUNCTION usage_pack(date, uuid, uuid) SET DateStyle = 'ISO';
END
$$;
