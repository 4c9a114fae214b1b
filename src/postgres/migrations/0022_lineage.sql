-- The lineage of a key: the admin token that created it, the one that created that token, and so on. A key is stored only while its whole
-- lineage is valid, so revoking a token stops everything that descends from it, however fast that creates keys.

-- Admin tokens that have created keys: few of all keys, by which a revocation with descendants searches downward.
CREATE TABLE creators (
  key_id uuid PRIMARY KEY,
  -- The admin token that created it; null: another caller.
  creator_id uuid
);
CREATE INDEX creators_creator ON creators (creator_id) WHERE creator_id IS NOT NULL;

-- Returns the key in created_by; null if another caller than an admin token created the key.
CREATE FUNCTION creator_of(created_by text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN created_by ^@ 'admin-token:' THEN substr(created_by, 13)::uuid END
$$;

-- The lock on the creator makes its revocation wait for the insertions in flight (0018); the lineage is read after it. The creators are stored
-- in the order of their ids, as they are locked, and before the digests of raw keys, so that two statements cannot deadlock.
-- The limit keeps the time of an insertion, which callers share, below 0.1 s. Without the generic plan, every insertion would plan the walk, which
-- takes four times as long as the rest.
CREATE OR REPLACE FUNCTION require_creators() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  ids uuid[];
  visited integer;
  invalid text;
BEGIN
  SELECT array_agg(DISTINCT creator_of(created_by)) INTO ids FROM added WHERE created_by ^@ 'admin-token:';
  IF ids IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM FROM api_keys WHERE key_id = ANY (ids) ORDER BY key_id FOR SHARE;
  INSERT INTO creators (key_id, creator_id)
  SELECT key_id, creator_of(created_by) FROM api_keys WHERE key_id = ANY (ids) ORDER BY key_id
  ON CONFLICT DO NOTHING;
  WITH RECURSIVE lineage (key_id, creator_id, state) AS (
    SELECT key_id, creator_of(created_by), state_of(revoke_time, expire_time, disable_time) FROM api_keys WHERE key_id = ANY (ids)
    UNION
    SELECT creator.key_id, creator_of(created_by), state_of(revoke_time, expire_time, disable_time)
    FROM lineage JOIN api_keys AS creator ON creator.key_id = lineage.creator_id
  )
  SELECT count(*), min(CASE WHEN key_id = ANY (ids) THEN 'it ' ELSE format('it descends from %s, which ', key_id) END || state)
    FILTER (WHERE state IS NOT NULL)
  INTO visited, invalid FROM (SELECT * FROM lineage LIMIT 10000::bigint * cardinality(ids) + 1) AS visited;
  IF invalid IS NOT NULL THEN
    RAISE EXCEPTION '%', invalid USING ERRCODE = 'KH003';
  END IF;
  IF visited > 10000::bigint * cardinality(ids) THEN
    RAISE EXCEPTION 'it descends from more than 10000 others' USING ERRCODE = 'KH003';
  END IF;
  RETURN NULL;
END
$$;

-- Returns why a key is not valid; null if it is.
CREATE FUNCTION state_of(revoke_time timestamptz, expire_time timestamptz, disable_time timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN revoke_time IS NOT NULL THEN 'is revoked'
    WHEN expire_time <= clock_timestamp() THEN 'has expired'
    WHEN disable_time IS NOT NULL THEN 'is disabled'
  END
$$;

-- For changes by hand: the service never changes created_by.
CREATE FUNCTION replace_creator() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO creators (key_id, creator_id)
  SELECT key_id, creator_of(created_by) FROM api_keys WHERE key_id IN (NEW.key_id, creator_of(NEW.created_by))
  ON CONFLICT (key_id) DO UPDATE SET creator_id = excluded.creator_id;
  RETURN NULL;
END
$$;

-- Returns keys that are not revoked and descend from this one, at most `max`; null: all. Each token is visited once, so that a cycle, which only a change by hand can
-- make, ends. Without the settings, a plan from when the tables were small would read them whole for every token. It runs as the owner, so that
-- servers need no right on creators.
CREATE FUNCTION descendants_of(root uuid, max integer) RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  WITH RECURSIVE tokens (key_id) AS (
    SELECT root
    UNION
    SELECT creators.key_id FROM tokens JOIN creators ON creators.creator_id = tokens.key_id
  )
  SELECT created.key_id FROM tokens CROSS JOIN LATERAL (
    SELECT key_id FROM api_keys
    WHERE created_by = 'admin-token:' || tokens.key_id AND revoke_time IS NULL AND created_by ^@ 'admin-token:' OFFSET 0
  ) AS created
  LIMIT max
$$;

-- See 0006.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['require_creators()', 'replace_creator()', 'descendants_of(uuid, integer)'] LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END
$$;

-- Waits for the insertions in flight, whose creators the statement below reads.
CREATE TRIGGER creator_changed AFTER UPDATE OF created_by ON api_keys
FOR EACH ROW WHEN (NEW.created_by IS DISTINCT FROM OLD.created_by) EXECUTE FUNCTION replace_creator();

-- The creators of the keys that are not revoked, read from the index of 0015 in one step for each, and the creators of those.
WITH RECURSIVE steps (created_by) AS (
  (SELECT created_by FROM api_keys WHERE revoke_time IS NULL AND created_by ^@ 'admin-token:' ORDER BY created_by LIMIT 1)
  UNION ALL
  SELECT (
    SELECT created_by FROM api_keys
    WHERE revoke_time IS NULL AND created_by ^@ 'admin-token:' AND created_by > steps.created_by ORDER BY created_by LIMIT 1
  ) FROM steps WHERE steps.created_by IS NOT NULL
), lineage (key_id) AS (
  SELECT creator_of(created_by) FROM steps WHERE created_by IS NOT NULL
  UNION
  SELECT creator_of(created_by) FROM lineage JOIN api_keys USING (key_id) WHERE created_by ^@ 'admin-token:'
)
INSERT INTO creators (key_id, creator_id) SELECT key_id, creator_of(created_by) FROM lineage JOIN api_keys USING (key_id);
