-- Events audit.checkpoint (docs/audit.md, "Tamper evidence"), so that a webhook can take checkpoints to where the owner of the database cannot
-- write.

ALTER TABLE audit_tree
  ADD COLUMN record_time timestamptz NOT NULL DEFAULT now(),
  -- The size at the last event, and that event itself.
  ADD COLUMN recorded_size bigint NOT NULL DEFAULT 0;

-- Records the checkpoint in the log if the tree has grown since, at most once an hour, and returns whether it did. The lock of the row lets one
-- server do so.
CREATE FUNCTION audit_checkpoint() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  WITH due AS (
    UPDATE audit_tree SET record_time = clock_timestamp(), recorded_size = size + 1
    WHERE size > recorded_size AND record_time <= clock_timestamp() - interval '1 hour'
    RETURNING checkpoint
  )
  INSERT INTO audit_pending (action, call, after)
  SELECT 'audit.checkpoint', audit_call(), jsonb_build_object('checkpoint', checkpoint) FROM due;
  RETURN FOUND;
END
$$;

-- The function runs as the owner: see 0006 and 0026.
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION audit_checkpoint SET search_path = %I, pg_temp', current_schema());
END
$$;
ALTER FUNCTION audit_checkpoint SET TimeZone = 'UTC';
REVOKE ALL ON FUNCTION audit_checkpoint FROM PUBLIC;
