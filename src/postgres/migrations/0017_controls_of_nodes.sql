-- A node that does not apply a control would accept a key that the control rejects. So no key gets a control while such a node has a lease,
-- and no such node has a lease while a key has the control. `nodes.verification_checks` has the controls that a node applies; servers of
-- release 0.2 and earlier do not write it.
--
-- A node has a lease until its row is deleted, because no clock of the database measures leases (0004). Any node deletes the row of a dead
-- one when it renews its own lease.
--
-- Both sides take an advisory lock before they look: the later of two concurrent ones sees what the earlier has committed, because each
-- statement of a PL/pgSQL function has a snapshot of its own (READ COMMITTED; PostgreSQL docs, 36.7). The number of the lock is one more
-- than that of the leader's.

-- AFTER, because COPY inserts rows one by one if there is a BEFORE trigger.
CREATE FUNCTION require_nodes_apply_control() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  others text;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(5394655);
  SELECT string_agg(DISTINCT format('%s (%s)', name, version), ', ') INTO others FROM nodes
  WHERE NOT TG_ARGV[0] = ANY (verification_checks);
  IF others IS NOT NULL THEN
    RAISE EXCEPTION 'nodes do not apply the control %: %', TG_ARGV[0], others USING ERRCODE = 'KH001', DETAIL = others;
  END IF;
  RETURN NULL;
END
$$;

-- Also at a renewal: a key may have got the control while its triggers were disabled, as while a dump is restored. Without statistics the
-- planner would read the table instead of the index of 0016.
CREATE FUNCTION require_node_applies_controls() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  missing text;
BEGIN
  PERFORM pg_advisory_xact_lock(5394655);
  SELECT control INTO missing FROM api_keys
  CROSS JOIN LATERAL (VALUES
    ('DISABLED', disable_time IS NOT NULL), ('ADDRESS', allowed_cidrs IS NOT NULL), ('ACTORS', restricted_to_actor_ids IS NOT NULL)
  ) AS applied (control, is_set)
  WHERE (disable_time IS NOT NULL OR allowed_cidrs IS NOT NULL OR restricted_to_actor_ids IS NOT NULL)
    AND revoke_time IS NULL AND is_set AND NOT control = ANY (NEW.verification_checks)
  LIMIT 1;
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION 'a key has the control %, which server % (%) does not apply: start a later release of Keyhold', missing, NEW.name, NEW.version
    USING ERRCODE = 'KH002';
  END IF;
  RETURN NEW;
END
$$;

-- Changes by hand may have another search_path than the servers.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['require_nodes_apply_control', 'require_node_applies_controls'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END
$$;

CREATE TRIGGER key_disabled AFTER INSERT OR UPDATE OF disable_time ON api_keys
FOR EACH ROW WHEN (NEW.disable_time IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('DISABLED');

CREATE TRIGGER key_restricted_to_addresses AFTER INSERT OR UPDATE OF allowed_cidrs ON api_keys
FOR EACH ROW WHEN (NEW.allowed_cidrs IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('ADDRESS');

CREATE TRIGGER key_restricted_to_actors AFTER INSERT OR UPDATE OF restricted_to_actor_ids ON api_keys
FOR EACH ROW WHEN (NEW.restricted_to_actor_ids IS NOT NULL) EXECUTE FUNCTION require_nodes_apply_control('ACTORS');

CREATE TRIGGER node_joined_or_renewed BEFORE INSERT OR UPDATE ON nodes
FOR EACH ROW WHEN (NOT NEW.verification_checks @> '{DISABLED,ADDRESS,ACTORS}') EXECUTE FUNCTION require_node_applies_controls();
