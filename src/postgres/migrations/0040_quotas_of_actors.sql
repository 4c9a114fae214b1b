-- Quotas that all keys of an actor share (docs/limits.md), beside the rate limits of 0035.
ALTER TABLE actors ADD COLUMN quotas jsonb;

DROP TRIGGER actor_limited ON actors;
CREATE TRIGGER actor_limited AFTER INSERT OR UPDATE OF rate_limits, quotas ON actors
FOR EACH ROW WHEN (NEW.rate_limits IS NOT NULL OR NEW.quotas IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('LIMITS');

-- The function of 0035.
CREATE OR REPLACE FUNCTION require_node_applies_limits() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off AS $$
DECLARE
  owner text;
BEGIN
  PERFORM pg_advisory_xact_lock(5394655);
  IF EXISTS (SELECT FROM api_keys WHERE (rate_limits IS NOT NULL OR quotas IS NOT NULL) AND (CASE WHEN revoke_time IS NULL THEN 1 END) = 1) THEN
    owner := 'a key';
  ELSIF EXISTS (SELECT FROM actors WHERE rate_limits IS NOT NULL OR quotas IS NOT NULL) THEN
    owner := 'an actor';
  END IF;
  IF owner IS NOT NULL THEN
    RAISE EXCEPTION '% has the control LIMITS, which server % (%) does not apply: start a later release of Keyhold', owner, NEW.name, NEW.version
    USING ERRCODE = 'KH002';
  END IF;
  RETURN NEW;
END
$$;

-- CREATE OR REPLACE has removed the settings.
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION require_node_applies_limits() SET search_path = %I, pg_temp', current_schema());
  ALTER FUNCTION require_node_applies_limits() SET TimeZone = 'UTC';
END
$$;
