-- The audit log (docs/audit.md). Triggers record every change in its own transaction, whatever program makes it: a change without its event
-- cannot commit. They run as the owner, so the servers' role can neither write nor change an event.

-- Who has revoked and disabled a key, as created_by. Null: an earlier release has.
ALTER TABLE api_keys ADD COLUMN revoked_by text COLLATE "C", ADD COLUMN disabled_by text COLLATE "C";

-- Events that have no place in the log yet. The id is drawn while the changed row is locked: events of one key have the order of its commits.
CREATE TABLE audit_pending (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- With the precision of the API.
  time timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
  action text NOT NULL,
  -- The API key; null: the event is about something else.
  key_id uuid,
  actor_id text,
  -- What else the event is about, such as the kid of a signing key.
  resource_id text,
  -- The call that made the change: `postgres/connection/call-context.ts`.
  call jsonb NOT NULL,
  -- The changed columns as they were and as they are; null: the row did not exist, or does not exist any more. Never a secret or a digest.
  before jsonb,
  after jsonb
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- The log. `seq` has no gaps.
CREATE TABLE audit_events (
  seq bigint PRIMARY KEY,
  time timestamptz NOT NULL,
  action text COLLATE "C" NOT NULL,
  key_id uuid,
  actor_id text COLLATE "C",
  resource_id text COLLATE "C",
  caller text COLLATE "C" NOT NULL,
  call jsonb NOT NULL,
  before jsonb,
  after jsonb,
  -- Tells two logs with events of one seq apart, and makes the digest of an event impossible to guess. Null: the event was erased.
  salt uuid DEFAULT gen_random_uuid()
);
CREATE INDEX audit_events_time ON audit_events (time, seq);
CREATE INDEX audit_events_key ON audit_events (key_id, time, seq) WHERE key_id IS NOT NULL;
CREATE INDEX audit_events_actor ON audit_events (actor_id, time, seq) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_caller ON audit_events (caller, time, seq);

-- One row, whose lock serializes the assignment of `seq`.
CREATE TABLE audit_log (size bigint NOT NULL);
INSERT INTO audit_log VALUES (0);

-- Assigns `seq` to at most this many committed events, and returns their number, and the milliseconds for which the first has waited. Each
-- statement of the function has a snapshot of its own (READ COMMITTED; PostgreSQL docs, 38.7), so the second one sees what the last holder of the
-- lock has committed.
CREATE FUNCTION audit_sequence(max_events integer, OUT assigned integer, OUT lag integer) LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  first bigint;
BEGIN
  assigned := 0;
  SELECT extract(epoch FROM clock_timestamp() - time) * 1000 INTO lag FROM audit_pending ORDER BY id LIMIT 1;
  IF NOT FOUND THEN
    lag := 0;
    RETURN;
  END IF;
  SELECT size INTO STRICT first FROM audit_log FOR UPDATE;
  WITH taken AS (
    DELETE FROM audit_pending WHERE id = ANY (ARRAY (SELECT id FROM audit_pending ORDER BY id LIMIT max_events)) RETURNING *
  )
  INSERT INTO audit_events (seq, time, action, key_id, actor_id, resource_id, caller, call, before, after)
  SELECT first + row_number() OVER (ORDER BY id) - 1, time, action, key_id, actor_id, resource_id, call ->> 'caller', call, before, after
  FROM taken ORDER BY id;
  GET DIAGNOSTICS assigned = ROW_COUNT;
  IF assigned > 0 THEN
    UPDATE audit_log SET size = first + assigned;
    PERFORM pg_notify('keyhold_audit', (first + assigned)::text);
  END IF;
END
$$;

-- Returns the call of the current statement; without one, the session that makes the change, such as that of an administrator of the database.
-- It has no settings of its own, so that PostgreSQL inlines it; its callers have fixed ones.
CREATE FUNCTION audit_call() RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('keyhold.call', true), '')::jsonb, jsonb_build_object(
    'caller', 'database:' || session_user, 'method', 'database', 'subject', session_user, 'peer_ip', coalesce(host(inet_client_addr()), ''),
    'user_agent', current_setting('application_name')))
$$;

-- One statement may store the keys of several calls, which are then named by key id. Columns that new keys seldom have stand apart, because each
-- column that is null costs as much as another.
CREATE FUNCTION audit_keys_created() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  call CONSTANT jsonb := audit_call();
BEGIN
  INSERT INTO audit_pending (action, key_id, actor_id, call, after)
  SELECT CASE added.kind WHEN 'issued' THEN 'key.issued' ELSE 'key.imported' END, added.key_id, added.actor_id,
    coalesce(call #> ARRAY['calls', added.key_id::text], call)
      || CASE WHEN request_id IS NULL THEN '{}' ELSE jsonb_build_object('request_id', request_id) END,
    CASE WHEN seldom IS NULL THEN to_jsonb(usual) ELSE to_jsonb(usual) || jsonb_strip_nulls(to_jsonb(seldom)) END
  FROM added CROSS JOIN LATERAL (
    SELECT
      added.key_id, added.kind, added.name, added.actor_id, added.scopes, added.metadata, added.hint, added.create_time, added.update_time,
      added.secret_version, added.digest_key_id, added.created_by
  ) AS usual CROSS JOIN LATERAL (
    SELECT
      added.expire_time, added.rotate_time, added.revoke_time, added.revocation_reason, added.revocation_description, added.revoked_by,
      added.disable_time, added.disable_reason, added.disabled_by, added.allowed_cidrs, added.restricted_to_actor_ids, added.hash_algorithm,
      added.hash_scheme_id, added.hash_prefix_length, added.adopt_before_time, added.adopted_expire_time, added.adopt_time
  ) AS seldom;
  RETURN NULL;
END
$$;

-- The arguments are the columns to leave out.
CREATE FUNCTION audit_keys_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  call CONSTANT jsonb := audit_call();
BEGIN
  INSERT INTO audit_pending (action, key_id, actor_id, call, before)
  SELECT 'key.deleted', key_id, actor_id, call, jsonb_strip_nulls(to_jsonb(deleted) - TG_ARGV) FROM deleted;
  RETURN NULL;
END
$$;

-- For other tables: the arguments are the kind of resource, its column, the last part of the action of an update, and the columns to leave out.
CREATE FUNCTION audit_row_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  secrets CONSTANT text[] := TG_ARGV[3:];
  -- The identifier is text: readers of JSON may not have integers of 64 bits.
  was jsonb := to_jsonb(OLD) - secrets || jsonb_build_object(TG_ARGV[1], to_jsonb(OLD) ->> TG_ARGV[1]);
  becomes jsonb := to_jsonb(NEW) - secrets || jsonb_build_object(TG_ARGV[1], to_jsonb(NEW) ->> TG_ARGV[1]);
  resource_id CONSTANT text := coalesce(becomes, was) ->> TG_ARGV[1];
  verb CONSTANT text := CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'DELETE' THEN 'deleted' ELSE TG_ARGV[2] END;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    SELECT jsonb_object_agg(key, was -> key), jsonb_object_agg(key, value) INTO was, becomes
    FROM jsonb_each(becomes) WHERE value IS DISTINCT FROM was -> key;
  END IF;
  INSERT INTO audit_pending (action, resource_id, call, before, after)
  VALUES (TG_ARGV[0] || '.' || verb, resource_id, audit_call(), was, becomes);
  RETURN NULL;
END
$$;

-- Denied calls change nothing, so a server records them itself. It can record nothing else.
CREATE FUNCTION audit_deny(denied jsonb) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO audit_pending (action, key_id, call, after)
  SELECT 'call.denied', (one ->> 'keyId')::uuid, one -> 'call', jsonb_build_object('reason', one ->> 'reason', 'count', one -> 'count')
  FROM jsonb_array_elements(denied) AS one
$$;

CREATE FUNCTION audit_truncated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO audit_pending (action, call) VALUES (TG_ARGV[0] || '.truncated', audit_call());
  RETURN NULL;
END
$$;

-- Each row runs only the assignments of what has changed, which takes 5 µs in an update of one key and 50 µs in one of many. A single statement
-- over transition tables takes 25 µs in an update of many, but 90 in one of one key, and 450 if its session plans it again for one row.
CREATE FUNCTION audit_key_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  was jsonb := '{}';
  becomes jsonb := '{}';
BEGIN
  -- See audit_key_id_changed. A WHEN clause of the trigger would be parsed for each statement.
  IF OLD.key_id <> NEW.key_id THEN
    RETURN NULL;
  END IF;
  IF OLD.update_time IS DISTINCT FROM NEW.update_time THEN
    was := jsonb_build_object('update_time', OLD.update_time);
    becomes := jsonb_build_object('update_time', NEW.update_time);
  END IF;
  IF (OLD.revoke_time, OLD.revocation_reason, OLD.revocation_description, OLD.revoked_by)
    IS DISTINCT FROM (NEW.revoke_time, NEW.revocation_reason, NEW.revocation_description, NEW.revoked_by) THEN
    was := was || jsonb_build_object('revoke_time', OLD.revoke_time, 'revocation_reason', OLD.revocation_reason, 'revocation_description',
      OLD.revocation_description, 'revoked_by', OLD.revoked_by);
    becomes := becomes || jsonb_build_object('revoke_time', NEW.revoke_time, 'revocation_reason', NEW.revocation_reason, 'revocation_description',
      NEW.revocation_description, 'revoked_by', NEW.revoked_by);
  END IF;
  IF (OLD.disable_time, OLD.disable_reason, OLD.disabled_by) IS DISTINCT FROM (NEW.disable_time, NEW.disable_reason, NEW.disabled_by) THEN
    was := was || jsonb_build_object('disable_time', OLD.disable_time, 'disable_reason', OLD.disable_reason, 'disabled_by', OLD.disabled_by);
    becomes := becomes || jsonb_build_object('disable_time', NEW.disable_time, 'disable_reason', NEW.disable_reason, 'disabled_by', NEW.disabled_by);
  END IF;
  IF (OLD.rotate_time, OLD.secret_version, OLD.digest_key_id, OLD.hint)
    IS DISTINCT FROM (NEW.rotate_time, NEW.secret_version, NEW.digest_key_id, NEW.hint) THEN
    was := was || jsonb_build_object('rotate_time', OLD.rotate_time, 'secret_version', OLD.secret_version, 'digest_key_id', OLD.digest_key_id,
      'hint', OLD.hint);
    becomes := becomes || jsonb_build_object('rotate_time', NEW.rotate_time, 'secret_version', NEW.secret_version, 'digest_key_id',
      NEW.digest_key_id, 'hint', NEW.hint);
  END IF;
  IF (OLD.name, OLD.scopes, OLD.metadata, OLD.expire_time, OLD.allowed_cidrs)
    IS DISTINCT FROM (NEW.name, NEW.scopes, NEW.metadata, NEW.expire_time, NEW.allowed_cidrs) THEN
    IF OLD.name IS DISTINCT FROM NEW.name THEN
      was := was || jsonb_build_object('name', OLD.name);
      becomes := becomes || jsonb_build_object('name', NEW.name);
    END IF;
    IF OLD.scopes IS DISTINCT FROM NEW.scopes THEN
      was := was || jsonb_build_object('scopes', OLD.scopes);
      becomes := becomes || jsonb_build_object('scopes', NEW.scopes);
    END IF;
    IF OLD.metadata IS DISTINCT FROM NEW.metadata THEN
      was := was || jsonb_build_object('metadata', OLD.metadata);
      becomes := becomes || jsonb_build_object('metadata', NEW.metadata);
    END IF;
    IF OLD.expire_time IS DISTINCT FROM NEW.expire_time THEN
      was := was || jsonb_build_object('expire_time', OLD.expire_time);
      becomes := becomes || jsonb_build_object('expire_time', NEW.expire_time);
    END IF;
    IF OLD.allowed_cidrs IS DISTINCT FROM NEW.allowed_cidrs THEN
      was := was || jsonb_build_object('allowed_cidrs', OLD.allowed_cidrs);
      becomes := becomes || jsonb_build_object('allowed_cidrs', NEW.allowed_cidrs);
    END IF;
  END IF;
  IF (OLD.hash_algorithm, OLD.hash_scheme_id, OLD.hash_prefix_length, OLD.adopt_before_time, OLD.adopted_expire_time, OLD.adopt_time)
    IS DISTINCT FROM (NEW.hash_algorithm, NEW.hash_scheme_id, NEW.hash_prefix_length, NEW.adopt_before_time, NEW.adopted_expire_time,
      NEW.adopt_time) THEN
    was := was || jsonb_build_object('hash_algorithm', OLD.hash_algorithm, 'hash_scheme_id', OLD.hash_scheme_id, 'hash_prefix_length',
      OLD.hash_prefix_length, 'adopt_before_time', OLD.adopt_before_time, 'adopted_expire_time', OLD.adopted_expire_time, 'adopt_time',
      OLD.adopt_time);
    becomes := becomes || jsonb_build_object('hash_algorithm', NEW.hash_algorithm, 'hash_scheme_id', NEW.hash_scheme_id, 'hash_prefix_length',
      NEW.hash_prefix_length, 'adopt_before_time', NEW.adopt_before_time, 'adopted_expire_time', NEW.adopted_expire_time, 'adopt_time',
      NEW.adopt_time);
  END IF;
  IF (OLD.kind, OLD.actor_id, OLD.create_time, OLD.created_by, OLD.restricted_to_actor_ids)
    IS DISTINCT FROM (NEW.kind, NEW.actor_id, NEW.create_time, NEW.created_by, NEW.restricted_to_actor_ids) THEN
    was := was || jsonb_build_object('kind', OLD.kind, 'actor_id', OLD.actor_id, 'create_time', OLD.create_time, 'created_by', OLD.created_by,
      'restricted_to_actor_ids', OLD.restricted_to_actor_ids);
    becomes := becomes || jsonb_build_object('kind', NEW.kind, 'actor_id', NEW.actor_id, 'create_time', NEW.create_time, 'created_by',
      NEW.created_by, 'restricted_to_actor_ids', NEW.restricted_to_actor_ids);
  END IF;
  IF becomes = '{}' AND (OLD.digest, OLD.previous_secrets) IS NOT DISTINCT FROM (NEW.digest, NEW.previous_secrets) THEN
    RETURN NULL;
  END IF;
  INSERT INTO audit_pending (action, key_id, actor_id, call, before, after) VALUES (
    CASE
      WHEN OLD.revoke_time IS DISTINCT FROM NEW.revoke_time THEN 'key.revoked'
      WHEN OLD.adopt_time IS DISTINCT FROM NEW.adopt_time THEN 'key.adopted'
      WHEN OLD.digest <> NEW.digest THEN 'key.rotated'
      WHEN OLD.disable_time IS NULL AND NEW.disable_time IS NOT NULL THEN 'key.disabled'
      WHEN OLD.disable_time IS NOT NULL AND NEW.disable_time IS NULL THEN 'key.enabled'
      ELSE 'key.updated' END,
    NEW.key_id, NEW.actor_id, audit_call(), was, becomes);
  RETURN NULL;
END
$$;

-- Another key_id, set in SQL, makes it another key. The arguments are the columns to leave out.
CREATE FUNCTION audit_key_id_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO audit_pending (action, key_id, actor_id, call, before, after) VALUES
    ('key.deleted', OLD.key_id, OLD.actor_id, audit_call(), jsonb_strip_nulls(to_jsonb(OLD) - TG_ARGV), NULL),
    (CASE NEW.kind WHEN 'issued' THEN 'key.issued' ELSE 'key.imported' END, NEW.key_id, NEW.actor_id, audit_call(), NULL,
      jsonb_strip_nulls(to_jsonb(NEW) - TG_ARGV));
  RETURN NULL;
END
$$;

CREATE TRIGGER key_id_changed_audited AFTER UPDATE OF key_id ON api_keys
FOR EACH ROW WHEN (OLD.key_id <> NEW.key_id) EXECUTE FUNCTION audit_key_id_changed(
  'digest', 'previous_secrets', 'other_digests', 'hash_parameters', 'request_id', 'request_fingerprint', 'last_used_time');
CREATE TRIGGER keys_created_audited AFTER INSERT ON api_keys REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION audit_keys_created();
-- Not of last_used_time, which verifications advance for many keys at once.
CREATE TRIGGER key_updated_audited AFTER UPDATE OF
  kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, rotate_time, revoke_time, revocation_reason,
  revocation_description, revoked_by, disable_time, disable_reason, disabled_by, secret_version, digest, digest_key_id, previous_secrets,
  allowed_cidrs, restricted_to_actor_ids, created_by, hash_algorithm, hash_scheme_id, hash_prefix_length, adopt_before_time, adopted_expire_time,
  adopt_time
ON api_keys FOR EACH ROW EXECUTE FUNCTION audit_key_updated();
CREATE TRIGGER keys_deleted_audited AFTER DELETE ON api_keys REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION audit_keys_deleted(
  'digest', 'previous_secrets', 'other_digests', 'hash_parameters', 'request_id', 'request_fingerprint', 'last_used_time');
CREATE TRIGGER keys_truncated_audited AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('keys');

CREATE TRIGGER signing_key_audited AFTER INSERT OR DELETE ON signing_keys
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('signing_key', 'kid', '', 'wrapped', 'tokens_expire_time');
CREATE TRIGGER signing_key_rotation_audited AFTER UPDATE OF kid, public_jwk, create_time, retire_time ON signing_keys
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('signing_key', 'kid', 'rotated', 'wrapped', 'tokens_expire_time');
CREATE TRIGGER signing_key_rewrap_audited AFTER UPDATE OF wrapped, wrap_key_id ON signing_keys
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('signing_key', 'kid', 'rewrapped', 'wrapped', 'tokens_expire_time');
CREATE TRIGGER hmac_key_audited AFTER INSERT OR UPDATE OR DELETE ON hmac_keys
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('hmac_key', 'hmac_key_id', 'rewrapped', 'wrapped_key', 'slot');
CREATE TRIGGER root_secret_audited AFTER INSERT OR UPDATE OR DELETE ON used_root_secrets
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('root_secret', 'digest_key_id', 'updated');
CREATE TRIGGER accepted_database_audited AFTER INSERT OR UPDATE OR DELETE ON accepted_databases
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('accepted_database', 'system_identifier', 'updated');
CREATE TRIGGER migration_audited AFTER INSERT OR UPDATE OR DELETE ON schema_migrations
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('migration', 'name', 'updated');
CREATE TRIGGER signing_keys_truncated_audited AFTER TRUNCATE ON signing_keys FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('signing_keys');
CREATE TRIGGER hmac_keys_truncated_audited AFTER TRUNCATE ON hmac_keys FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('hmac_keys');
CREATE TRIGGER used_root_secrets_truncated_audited AFTER TRUNCATE ON used_root_secrets FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('root_secrets');
CREATE TRIGGER accepted_databases_truncated_audited AFTER TRUNCATE ON accepted_databases FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('accepted_databases');
CREATE TRIGGER schema_migrations_truncated_audited AFTER TRUNCATE ON schema_migrations FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('migrations');

-- The functions run as the owner: see 0006. Every role may call a new function until that is revoked.
DO $$
DECLARE
  signature regprocedure;
BEGIN
  FOR signature IN SELECT oid FROM pg_proc WHERE proname LIKE 'audit\_%' AND pronamespace = current_schema()::regnamespace LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    IF signature <> 'audit_call()'::regprocedure THEN
      EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', signature, current_schema());
      -- The times in JSON.
      EXECUTE format('ALTER FUNCTION %s SET TimeZone = ''UTC''', signature);
    END IF;
  END LOOP;
END
$$;
