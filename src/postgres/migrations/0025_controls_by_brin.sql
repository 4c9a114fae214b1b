-- The function of 0017 by the index of 0024. A BRIN index has bitmap scans only, so the planner can choose nothing else.
CREATE OR REPLACE FUNCTION require_node_applies_controls() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off AS $$
DECLARE
  missing text;
BEGIN
  PERFORM pg_advisory_xact_lock(5394655);
  SELECT control INTO missing FROM api_keys
  CROSS JOIN LATERAL (VALUES
    ('DISABLED', disable_time IS NOT NULL), ('ADDRESS', allowed_cidrs IS NOT NULL), ('ACTORS', restricted_to_actor_ids IS NOT NULL)
  ) AS applied (control, is_set)
  WHERE (disable_time IS NOT NULL OR allowed_cidrs IS NOT NULL OR restricted_to_actor_ids IS NOT NULL)
    AND (CASE WHEN revoke_time IS NULL THEN 1 END) = 1 AND is_set AND NOT control = ANY (NEW.verification_checks)
  LIMIT 1;
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION 'a key has the control %, which server % (%) does not apply: start a later release of Keyhold', missing, NEW.name, NEW.version
    USING ERRCODE = 'KH002';
  END IF;
  RETURN NEW;
END
$$;
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION require_node_applies_controls() SET search_path = %I, pg_temp', current_schema());
END
$$;

DROP INDEX api_keys_controlled;
