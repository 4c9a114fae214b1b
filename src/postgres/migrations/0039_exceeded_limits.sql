-- Events limit.exceeded (docs/audit.md, "Exceeded limits"): one for each bucket and period, whatever the number of servers.

-- The end of the period of the last event of a bucket.
CREATE TABLE limit_notices (
  bucket text COLLATE "C" PRIMARY KEY,
  end_time timestamptz NOT NULL
);
CREATE INDEX limit_notices_end_time ON limit_notices (end_time);

-- Records limits that were exceeded, unless they have an event in their period: until `endTime`, or for `period` from now, both in milliseconds. Without
-- a call, it is the key or actor that has exceeded its own limit. Returns the number of events. Rows are locked in the order of their buckets.
CREATE FUNCTION audit_limits(exceeded jsonb) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
  DELETE FROM limit_notices WHERE bucket = ANY (ARRAY (
    SELECT bucket FROM limit_notices WHERE end_time < clock_timestamp() - interval '1 day' ORDER BY end_time LIMIT 1000 FOR UPDATE SKIP LOCKED));
  WITH noticed AS (
    INSERT INTO limit_notices AS notice (bucket, end_time)
    SELECT one ->> 'bucket', coalesce(to_timestamp((one ->> 'endTime')::float8 / 1000),
      clock_timestamp() + (one ->> 'period')::float8 * interval '1 millisecond')
    FROM jsonb_array_elements(exceeded) AS one ORDER BY one ->> 'bucket' COLLATE "C"
    ON CONFLICT (bucket) DO UPDATE SET end_time = excluded.end_time WHERE notice.end_time <= clock_timestamp()
    RETURNING bucket
  ), event AS (
    INSERT INTO audit_pending (action, key_id, actor_id, resource_id, call, after)
    SELECT 'limit.exceeded', key_id, coalesce(one ->> 'actorId', api_keys.actor_id), one ->> 'limit', coalesce(one -> 'call', audit_call()), one -> 'details'
    FROM jsonb_array_elements(exceeded) AS one JOIN noticed ON bucket = one ->> 'bucket'
    LEFT JOIN api_keys ON key_id = (one ->> 'keyId')::uuid
    ORDER BY bucket RETURNING 1
  )
  SELECT count(*) FROM event
$$;

-- The function runs as the owner: see 0006 and 0026.
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION audit_limits SET search_path = %I, pg_temp', current_schema());
END
$$;
ALTER FUNCTION audit_limits SET TimeZone = 'UTC';
REVOKE ALL ON FUNCTION audit_limits FROM PUBLIC;
