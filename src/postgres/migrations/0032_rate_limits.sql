-- Limits on the verifications of a key (docs/limits.md). Nullable columns without a default: no row is rewritten.
ALTER TABLE api_keys ADD COLUMN rate_limits jsonb, ADD COLUMN quotas jsonb;

-- Returns the end of the period of a calendar that contains a time: the anchor is the begin of one of them. In UTC; a month that has no day like
-- that of the anchor ends a period on its last day.
CREATE FUNCTION quota_period_end(at timestamptz, period text, anchor timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT min(ends) AT TIME ZONE 'UTC' FROM (
    SELECT (anchor AT TIME ZONE 'UTC') + (number + candidate) * unit AS ends
    FROM (SELECT ('1 ' || period)::interval AS unit, at AT TIME ZONE 'UTC' AS now, anchor AT TIME ZONE 'UTC' AS start) AS calendar,
    LATERAL (SELECT floor(CASE period
      WHEN 'YEAR' THEN extract(year FROM now) - extract(year FROM start)
      WHEN 'MONTH' THEN (extract(year FROM now) - extract(year FROM start)) * 12 + extract(month FROM now) - extract(month FROM start)
      ELSE extract(epoch FROM now - start) / extract(epoch FROM unit) END)::integer AS number) AS elapsed,
    generate_series(0, 1) AS candidate
  ) AS periods WHERE ends > at AT TIME ZONE 'UTC'
$$;

-- The tokens that have been granted, by the key and the name of the limit. No index but the primary key, so that updates are heap-only.
CREATE TABLE limit_buckets (
  bucket text COLLATE "C" PRIMARY KEY,
  -- Tokens that are granted and not refilled yet, at update_time.
  level float8 NOT NULL,
  update_time timestamptz NOT NULL,
  -- What the last statement has granted.
  granted integer NOT NULL,
  -- The limit, by the last statement: its size, and the tokens with which it refills per millisecond; 0: it is a quota.
  burst integer NOT NULL,
  rate float8 NOT NULL,
  -- Of a quota: its calendar, and the end of its current period, at which all of it refills.
  period text,
  anchor_time timestamptz,
  reset_time timestamptz
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

DROP TRIGGER key_changed ON api_keys;
CREATE TRIGGER key_changed AFTER DELETE OR UPDATE OF
  key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, rotate_time, revoke_time,
  revocation_reason, revocation_description, secret_version, digest, digest_key_id, previous_secrets, disable_time, disable_reason,
  allowed_cidrs, restricted_to_actor_ids, created_by, hash_algorithm, hash_scheme_id, hash_parameters, hash_prefix_length, adopt_before_time,
  adopted_expire_time, adopt_time, rate_limits, quotas
ON api_keys FOR EACH ROW EXECUTE FUNCTION notify_key_changed();

-- Servers of release 0.3 and earlier do not apply limits: see 0017.
CREATE TRIGGER key_limited AFTER INSERT OR UPDATE OF rate_limits, quotas ON api_keys
FOR EACH ROW WHEN (NEW.rate_limits IS NOT NULL OR NEW.quotas IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('LIMITS');

CREATE FUNCTION require_node_applies_limits() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(5394655);
  IF EXISTS (SELECT FROM api_keys WHERE (rate_limits IS NOT NULL OR quotas IS NOT NULL) AND (CASE WHEN revoke_time IS NULL THEN 1 END) = 1) THEN
    RAISE EXCEPTION 'a key has the control LIMITS, which server % (%) does not apply: start a later release of Keyhold', NEW.name, NEW.version
    USING ERRCODE = 'KH002';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER node_joined_or_renewed_with_limits BEFORE INSERT OR UPDATE ON nodes
FOR EACH ROW WHEN (NOT 'LIMITS' = ANY (NEW.verification_checks)) EXECUTE FUNCTION require_node_applies_limits();

-- The functions of 0026 with the new column.
CREATE OR REPLACE FUNCTION audit_keys_created() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
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
      added.disable_time, added.disable_reason, added.disabled_by, added.allowed_cidrs, added.restricted_to_actor_ids, added.rate_limits, added.quotas, added.hash_algorithm,
      added.hash_scheme_id, added.hash_prefix_length, added.adopt_before_time, added.adopted_expire_time, added.adopt_time
  ) AS seldom;
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION audit_keys_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
        || CASE WHEN changed.limits THEN jsonb_build_object('rate_limits', was.rate_limits, 'quotas', was.quotas) ELSE '{}' END
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
        || CASE WHEN changed.limits THEN jsonb_build_object('rate_limits', becomes.rate_limits, 'quotas', becomes.quotas) ELSE '{}' END
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
        (becomes.rate_limits, becomes.quotas) IS DISTINCT FROM (was.rate_limits, was.quotas) AS limits,
        (becomes.kind, becomes.actor_id, becomes.create_time, becomes.created_by, becomes.restricted_to_actor_ids) IS DISTINCT FROM (was.kind,
          was.actor_id, was.create_time, was.created_by, was.restricted_to_actor_ids) AS immutable,
        becomes.digest IS DISTINCT FROM was.digest AS digest,
        (becomes.previous_secrets, becomes.hash_parameters) IS DISTINCT FROM (was.previous_secrets, was.hash_parameters) AS unrecorded
    OFFSET 0
  ) AS changed
  WHERE changed.times OR changed.revocation OR changed.disabling OR changed.secret OR changed.adoption OR changed.name OR changed.scopes
    OR changed.metadata OR changed.expiry OR changed.addresses OR changed.limits OR changed.immutable OR changed.digest OR changed.unrecorded;
  RETURN NULL;
END
$$;

-- CREATE OR REPLACE has removed their settings.
DO $$
DECLARE
  name text;
BEGIN
  REVOKE ALL ON FUNCTION quota_period_end(timestamptz, text, timestamptz) FROM PUBLIC;
  FOREACH name IN ARRAY ARRAY['require_node_applies_limits', 'audit_keys_created', 'audit_keys_updated'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
    EXECUTE format('ALTER FUNCTION %I() SET TimeZone = ''UTC''', name);
  END LOOP;
END
$$;
