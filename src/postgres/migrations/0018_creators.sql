-- A key whose creator is revoked is not stored, so that a revocation with descendants finds every key that the creator has made. The lock on
-- the creator makes its revocation wait for the insertions in flight; one that comes later waits for the revocation. The locks are taken in
-- the order of the ids, as those of a revocation with descendants, so that two statements cannot deadlock.
CREATE FUNCTION require_creators() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET enable_seqscan = off AS $$
DECLARE
  creators uuid[];
  creator record;
BEGIN
  SELECT array_agg(DISTINCT substr(created_by, 13)::uuid) INTO creators FROM added WHERE created_by ^@ 'admin-token:';
  IF creators IS NULL THEN
    RETURN NULL;
  END IF;
  FOR creator IN SELECT key_id, revoke_time FROM api_keys WHERE key_id = ANY (creators) ORDER BY key_id FOR SHARE LOOP
    IF creator.revoke_time IS NOT NULL THEN
      RAISE EXCEPTION 'the admin token % is revoked', creator.key_id USING ERRCODE = 'KH003';
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;

-- The function runs as the owner: see 0006.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION require_creators() SET search_path = %I, pg_temp', current_schema()); END $$;

CREATE TRIGGER creators_required AFTER INSERT ON api_keys
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION require_creators();
