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
CREATE FUNCTION audit_sequence(max_events integer, OUT assigned integer, OUT lag float8) LANGUAGE plpgsql SECURITY DEFINER
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
    PERFORM pg_notify('keyhold_audit', (SELECT format('%s %s', seq + 1, salt) FROM audit_events WHERE seq = first + assigned - 1));
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

-- Columns that change together are recorded together: with an expression for each column, the event of an update of one key takes 140 µs instead
-- of 90. OFFSET keeps the comparisons from being repeated. A row trigger takes 5 µs for one key, but 50 for each of many instead of 20.
-- A session keeps one plan for one key and for many: the join must not be a nested loop, and without the setting of the plan cache a session that
-- has changed many keys at once plans the statement again for each later change, which takes 450 µs.
CREATE FUNCTION audit_keys_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_nestloop = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  call CONSTANT jsonb := audit_call();
BEGIN
  INSERT INTO audit_pending (action, key_id, actor_id, call, before, after)
  SELECT CASE
      WHEN becomes.revoke_time IS DISTINCT FROM was.revoke_time THEN 'key.revoked'
      WHEN becomes.adopt_time IS DISTINCT FROM was.adopt_time THEN 'key.adopted'
      WHEN changed.digest THEN 'key.rotated'
      WHEN was.disable_time IS NULL AND becomes.disable_time IS NOT NULL THEN 'key.disabled'
      WHEN was.disable_time IS NOT NULL AND becomes.disable_time IS NULL THEN 'key.enabled'
      ELSE 'key.updated' END,
    key_id, becomes.actor_id, call,
        CASE WHEN changed.times THEN jsonb_build_object('update_time', was.update_time) ELSE '{}' END
        || CASE WHEN changed.revocation THEN jsonb_build_object('revoke_time', was.revoke_time, 'revocation_reason', was.revocation_reason,
          'revocation_description', was.revocation_description, 'revoked_by', was.revoked_by) ELSE '{}' END
        || CASE WHEN changed.disabling THEN jsonb_build_object('disable_time', was.disable_time, 'disable_reason', was.disable_reason,
          'disabled_by', was.disabled_by) ELSE '{}' END
        || CASE WHEN changed.secret THEN jsonb_build_object('rotate_time', was.rotate_time, 'secret_version', was.secret_version, 'digest_key_id',
          was.digest_key_id, 'hint', was.hint) ELSE '{}' END
        || CASE WHEN changed.adoption THEN jsonb_build_object('hash_algorithm', was.hash_algorithm, 'hash_scheme_id', was.hash_scheme_id,
          'hash_prefix_length', was.hash_prefix_length, 'adopt_before_time', was.adopt_before_time, 'adopted_expire_time', was.adopted_expire_time,
          'adopt_time', was.adopt_time) ELSE '{}' END
        || CASE WHEN changed.name THEN jsonb_build_object('name', was.name) ELSE '{}' END
        || CASE WHEN changed.scopes THEN jsonb_build_object('scopes', was.scopes) ELSE '{}' END
        || CASE WHEN changed.metadata THEN jsonb_build_object('metadata', was.metadata) ELSE '{}' END
        || CASE WHEN changed.expiry THEN jsonb_build_object('expire_time', was.expire_time) ELSE '{}' END
        || CASE WHEN changed.addresses THEN jsonb_build_object('allowed_cidrs', was.allowed_cidrs) ELSE '{}' END
        || CASE WHEN changed.immutable THEN jsonb_build_object('kind', was.kind, 'actor_id', was.actor_id, 'create_time', was.create_time,
          'created_by', was.created_by, 'restricted_to_actor_ids', was.restricted_to_actor_ids) ELSE '{}' END,
        CASE WHEN changed.times THEN jsonb_build_object('update_time', becomes.update_time) ELSE '{}' END
        || CASE WHEN changed.revocation THEN jsonb_build_object('revoke_time', becomes.revoke_time, 'revocation_reason', becomes.revocation_reason,
          'revocation_description', becomes.revocation_description, 'revoked_by', becomes.revoked_by) ELSE '{}' END
        || CASE WHEN changed.disabling THEN jsonb_build_object('disable_time', becomes.disable_time, 'disable_reason', becomes.disable_reason,
          'disabled_by', becomes.disabled_by) ELSE '{}' END
        || CASE WHEN changed.secret THEN jsonb_build_object('rotate_time', becomes.rotate_time, 'secret_version', becomes.secret_version,
          'digest_key_id', becomes.digest_key_id, 'hint', becomes.hint) ELSE '{}' END
        || CASE WHEN changed.adoption THEN jsonb_build_object('hash_algorithm', becomes.hash_algorithm, 'hash_scheme_id', becomes.hash_scheme_id,
          'hash_prefix_length', becomes.hash_prefix_length, 'adopt_before_time', becomes.adopt_before_time, 'adopted_expire_time',
          becomes.adopted_expire_time, 'adopt_time', becomes.adopt_time) ELSE '{}' END
        || CASE WHEN changed.name THEN jsonb_build_object('name', becomes.name) ELSE '{}' END
        || CASE WHEN changed.scopes THEN jsonb_build_object('scopes', becomes.scopes) ELSE '{}' END
        || CASE WHEN changed.metadata THEN jsonb_build_object('metadata', becomes.metadata) ELSE '{}' END
        || CASE WHEN changed.expiry THEN jsonb_build_object('expire_time', becomes.expire_time) ELSE '{}' END
        || CASE WHEN changed.addresses THEN jsonb_build_object('allowed_cidrs', becomes.allowed_cidrs) ELSE '{}' END
        || CASE WHEN changed.immutable THEN jsonb_build_object('kind', becomes.kind, 'actor_id', becomes.actor_id, 'create_time',
          becomes.create_time, 'created_by', becomes.created_by, 'restricted_to_actor_ids', becomes.restricted_to_actor_ids) ELSE '{}' END
  FROM was JOIN becomes USING (key_id)
  CROSS JOIN LATERAL (
    SELECT
        becomes.update_time IS DISTINCT FROM was.update_time AS times,
        (becomes.revoke_time, becomes.revocation_reason, becomes.revocation_description, becomes.revoked_by) IS DISTINCT FROM (was.revoke_time,
          was.revocation_reason, was.revocation_description, was.revoked_by) AS revocation,
        (becomes.disable_time, becomes.disable_reason, becomes.disabled_by) IS DISTINCT FROM (was.disable_time, was.disable_reason,
          was.disabled_by) AS disabling,
        (becomes.rotate_time, becomes.secret_version, becomes.digest_key_id, becomes.hint) IS DISTINCT FROM (was.rotate_time, was.secret_version,
          was.digest_key_id, was.hint) AS secret,
        (becomes.hash_algorithm, becomes.hash_scheme_id, becomes.hash_prefix_length, becomes.adopt_before_time, becomes.adopted_expire_time,
          becomes.adopt_time) IS DISTINCT FROM (was.hash_algorithm, was.hash_scheme_id, was.hash_prefix_length, was.adopt_before_time,
          was.adopted_expire_time, was.adopt_time) AS adoption,
        becomes.name IS DISTINCT FROM was.name AS name,
        becomes.scopes IS DISTINCT FROM was.scopes AS scopes,
        becomes.metadata IS DISTINCT FROM was.metadata AS metadata,
        becomes.expire_time IS DISTINCT FROM was.expire_time AS expiry,
        becomes.allowed_cidrs IS DISTINCT FROM was.allowed_cidrs AS addresses,
        (becomes.kind, becomes.actor_id, becomes.create_time, becomes.created_by, becomes.restricted_to_actor_ids) IS DISTINCT FROM (was.kind,
          was.actor_id, was.create_time, was.created_by, was.restricted_to_actor_ids) AS immutable,
        becomes.digest IS DISTINCT FROM was.digest AS digest,
        (becomes.previous_secrets, becomes.hash_parameters) IS DISTINCT FROM (was.previous_secrets, was.hash_parameters) AS unrecorded
    OFFSET 0
  ) AS changed
  WHERE changed.times OR changed.revocation OR changed.disabling OR changed.secret OR changed.adoption OR changed.name OR changed.scopes
    OR changed.metadata OR changed.expiry OR changed.addresses OR changed.immutable OR changed.digest OR changed.unrecorded;
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
CREATE TRIGGER keys_updated_audited AFTER UPDATE ON api_keys REFERENCING OLD TABLE AS was NEW TABLE AS becomes
FOR EACH STATEMENT EXECUTE FUNCTION audit_keys_updated();
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
