-- Limits that all keys of an actor share (docs/limits.md). An actor has a row since limits were set for it, until it is deleted.
CREATE TABLE actors (
  actor_id text COLLATE "C" PRIMARY KEY,
  rate_limits jsonb,
  create_time timestamptz NOT NULL,
  update_time timestamptz NOT NULL
);

-- An actor may have any number of keys, so nodes are notified of the actor. In hexadecimal: an id may contain any character.
CREATE FUNCTION notify_actor_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'actor ' || encode(convert_to(actor_id, 'UTF8'), 'hex'))
  FROM unnest(ARRAY[OLD.actor_id, NEW.actor_id]) AS actor_id WHERE actor_id IS NOT NULL;
  RETURN NULL;
END
$$;
CREATE TRIGGER actor_changed AFTER INSERT OR UPDATE OR DELETE ON actors FOR EACH ROW EXECUTE FUNCTION notify_actor_changed();
CREATE TRIGGER actors_truncated AFTER TRUNCATE ON actors FOR EACH STATEMENT EXECUTE FUNCTION notify_change('everything');

-- The function of 0026; the event of an actor is found by it.
CREATE OR REPLACE FUNCTION audit_row_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  secrets CONSTANT text[] := TG_ARGV[3:];
  -- The identifier is text: readers of JSON may not have integers of 64 bits.
  was jsonb := to_jsonb(OLD) - secrets || jsonb_build_object(TG_ARGV[1], to_jsonb(OLD) ->> TG_ARGV[1]);
  becomes jsonb := to_jsonb(NEW) - secrets || jsonb_build_object(TG_ARGV[1], to_jsonb(NEW) ->> TG_ARGV[1]);
  resource_id CONSTANT text := coalesce(becomes, was) ->> TG_ARGV[1];
  actor_id CONSTANT text := coalesce(becomes, was) ->> 'actor_id';
  verb CONSTANT text := CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'DELETE' THEN 'deleted' ELSE TG_ARGV[2] END;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    SELECT jsonb_object_agg(key, was -> key), jsonb_object_agg(key, value) INTO was, becomes
    FROM jsonb_each(becomes) WHERE value IS DISTINCT FROM was -> key;
  END IF;
  INSERT INTO audit_pending (action, actor_id, resource_id, call, before, after)
  VALUES (TG_ARGV[0] || '.' || verb, actor_id, resource_id, audit_call(), was, becomes);
  RETURN NULL;
END
$$;

CREATE TRIGGER actor_audited AFTER INSERT OR UPDATE OR DELETE ON actors
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('actor', 'actor_id', 'updated');
CREATE TRIGGER actors_truncated_audited AFTER TRUNCATE ON actors FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('actors');

-- The control LIMITS (0032) concerns the keys of actors with limits, too.
CREATE TRIGGER actor_limited AFTER INSERT OR UPDATE OF rate_limits ON actors
FOR EACH ROW WHEN (NEW.rate_limits IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('LIMITS');

CREATE OR REPLACE FUNCTION require_node_applies_limits() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off AS $$
DECLARE
  owner text;
BEGIN
  PERFORM pg_advisory_xact_lock(5394655);
  IF EXISTS (SELECT FROM api_keys WHERE (rate_limits IS NOT NULL OR quotas IS NOT NULL) AND (CASE WHEN revoke_time IS NULL THEN 1 END) = 1) THEN
    owner := 'a key';
  ELSIF EXISTS (SELECT FROM actors WHERE rate_limits IS NOT NULL) THEN
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
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['audit_row_changed', 'require_node_applies_limits'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
    EXECUTE format('ALTER FUNCTION %I() SET TimeZone = ''UTC''', name);
  END LOOP;
END
$$;
