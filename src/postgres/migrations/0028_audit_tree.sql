-- The Merkle tree over the audit log (docs/audit.md): RFC 6962 §2.1 in the form of C2SP tlog-tiles. Servers compute it, because the database cannot
-- make the canonical JSON of an event.

-- 256 hashes of 32 bytes, or fewer at the end of a level. Level 0 are the hashes of the entries; level -1 has the digests of the events.
CREATE TABLE audit_tiles (
  level smallint NOT NULL,
  index bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (level, index)
) WITH (toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 2000);
-- Hashes cannot be compressed.
ALTER TABLE audit_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- One row, whose lock serializes the growth of the tree.
CREATE TABLE audit_tree (
  -- The name of the log in its checkpoints. It stays the same when the database is restored from a backup, so that a fork is visible.
  origin text NOT NULL DEFAULT 'keyhold/' || gen_random_uuid(),
  size bigint NOT NULL DEFAULT 0,
  checkpoint text
);
INSERT INTO audit_tree DEFAULT VALUES;

-- The key that signs checkpoints: one row at most.
CREATE TABLE audit_tree_key (
  verifier_key text PRIMARY KEY,
  wrapped bytea NOT NULL,
  wrap_key_id text NOT NULL,
  create_time timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp())
);
CREATE UNIQUE INDEX audit_tree_key_single ON audit_tree_key ((true));

CREATE TRIGGER audit_tree_key_audited AFTER INSERT OR UPDATE OR DELETE ON audit_tree_key
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('audit_tree_key', 'verifier_key', 'rewrapped', 'wrapped');
CREATE TRIGGER audit_tree_key_truncated_audited AFTER TRUNCATE ON audit_tree_key FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('audit_tree_keys');

-- Adds hashes to tiles, and replaces the checkpoint. No hash that the tree has can change, and its size cannot decrease, whoever calls. Returns
-- false, and does nothing, if the tree does not have the expected size: another server has added them.
CREATE FUNCTION audit_grow(expected_size bigint, new_size bigint, tiles jsonb, new_checkpoint text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  unexpected bigint;
BEGIN
  PERFORM FROM audit_tree WHERE size = expected_size FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF new_size < expected_size OR new_size > (SELECT size FROM audit_log) THEN
    RAISE EXCEPTION 'the tree cannot grow from % to % events', expected_size, new_size;
  END IF;
  WITH added AS (
    INSERT INTO audit_tiles AS tile (level, index, hashes)
    SELECT (one ->> 'level')::smallint, (one ->> 'index')::bigint, decode(one ->> 'hashes', 'hex') FROM jsonb_array_elements(tiles) AS one
    ON CONFLICT (level, index) DO UPDATE SET hashes = tile.hashes || excluded.hashes
    RETURNING level, index, octet_length(hashes) AS length
  )
  -- What the level has in a tree of the new size. Numeric: the level may be any.
  SELECT count(*) INTO unexpected FROM added WHERE length <> 32 * least(256, div(new_size, 256::numeric ^ greatest(level, 0)) - index * 256);
  IF unexpected > 0 THEN
    RAISE EXCEPTION 'the tiles are not those of a tree of % events', new_size;
  END IF;
  UPDATE audit_tree SET size = new_size, checkpoint = new_checkpoint;
  RETURN true;
END
$$;

-- Deletes events of the beginning of the log that are older than `cutoff`, about `max_events` at most, and returns their number. For the owner only:
-- servers may not call it. What remains is the end of the log, without a gap, beginning with a complete tile (C2SP tlog-tiles, "Pruning"). The
-- hashes remain, so that checkpoints from before can still be compared.
CREATE FUNCTION audit_prune(cutoff timestamptz, max_events bigint DEFAULT 1000000) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  first bigint;
  pruned bigint;
BEGIN
  SELECT least(coalesce((SELECT seq FROM audit_events WHERE time >= cutoff ORDER BY seq LIMIT 1), max(seq) + 1), min(seq) + max_events,
    (SELECT size FROM audit_tree)) INTO first FROM audit_events;
  first := first - first % 256;
  DELETE FROM audit_events WHERE seq < first;
  GET DIAGNOSTICS pruned = ROW_COUNT;
  IF pruned > 0 THEN
    DELETE FROM audit_tiles WHERE level = -1 AND index < first / 256;
    INSERT INTO audit_pending (action, call, after)
    VALUES ('audit.pruned', audit_call(), jsonb_build_object('count', pruned, 'first_seq', first, 'cutoff', cutoff));
  END IF;
  RETURN pruned;
END
$$;

-- Erases the content of events about a person, and returns their number: `subject` is actor, caller or key, and `id` its actor_id, its name in
-- `caller`, or its key_id. Only seq, time, action and key_id remain, of which the tree has hashes; the digest of the rest reveals nothing without
-- its salt. For the owner only. Reads the whole log. Events that the tree does not have yet, for a second, are left.
CREATE FUNCTION audit_erase(subject text, id text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  erased bigint;
BEGIN
  IF subject NOT IN ('actor', 'caller', 'key') THEN
    RAISE EXCEPTION 'unknown subject "%"; allowed: actor, caller, key', subject;
  END IF;
  UPDATE audit_events SET actor_id = NULL, resource_id = NULL, caller = '', call = '{"caller": "", "method": "", "subject": ""}', before = NULL,
    after = NULL, salt = NULL
  WHERE seq < (SELECT size FROM audit_tree) AND salt IS NOT NULL AND action NOT IN ('audit.pruned', 'audit.erased') AND CASE subject
    WHEN 'key' THEN key_id = id::uuid
    WHEN 'actor' THEN actor_id = id OR before -> 'restricted_to_actor_ids' ? id OR after -> 'restricted_to_actor_ids' ? id
    ELSE id IN (caller, before ->> 'created_by', after ->> 'created_by', before ->> 'revoked_by', after ->> 'revoked_by',
      before ->> 'disabled_by', after ->> 'disabled_by')
  END;
  GET DIAGNOSTICS erased = ROW_COUNT;
  IF erased > 0 THEN
    INSERT INTO audit_pending (action, call, after)
    VALUES ('audit.erased', audit_call(), jsonb_build_object('count', erased, 'subject', subject));
  END IF;
  RETURN erased;
END
$$;

-- The functions run as the owner: see 0026.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'audit_grow(bigint, bigint, jsonb, text)', 'audit_prune(timestamptz, bigint)', 'audit_erase(text, text)'
  ] LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET TimeZone = ''UTC''', name);
  END LOOP;
END
$$;
