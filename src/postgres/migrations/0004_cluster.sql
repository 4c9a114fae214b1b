-- Nodes: servers that may answer from memory, one row a lease. A lease is not measured by any clock of the database: its node
-- measures it from before it asked for it, and the others from when they first saw its number of renewals (docs/consistency.md).
CREATE TABLE nodes (
  lease_id uuid PRIMARY KEY,
  name text NOT NULL,
  version text NOT NULL,
  ttl_ms integer NOT NULL CHECK (ttl_ms > 0),
  renewals bigint NOT NULL DEFAULT 0,
  -- For people: when the lease was taken and last renewed, and how long news took to reach the node then.
  join_time timestamptz NOT NULL DEFAULT clock_timestamp(),
  renew_time timestamptz NOT NULL DEFAULT clock_timestamp(),
  feed_lag_ms real
) WITH (fillfactor = 50);

-- Whoever changes a key or a signing key, and by whatever program, tells every node of it, together with the commit. The text is
-- read by postgres/feed-events.ts. What the previous version changes is told of too.

-- Every column but last_used_time, which verification does not know.
CREATE FUNCTION tell_key_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'key ' || OLD.key_id);
  RETURN NULL;
END
$$;
CREATE TRIGGER key_changed AFTER DELETE OR UPDATE OF
  key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, rotate_time, revoke_time,
  revocation_reason, revocation_description, secret_version, digest, digest_key_id, previous_secrets
ON api_keys FOR EACH ROW EXECUTE FUNCTION tell_key_changed();

-- A raw key may have been looked for in vain before it came; an issued secret cannot have been. A payload holds 8000 bytes at the
-- most: a hundred digests in hexadecimal.
CREATE FUNCTION tell_raw_keys_came() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'digests ' || string_agg(encode(digest, 'hex'), ','))
  FROM (SELECT digest, (row_number() OVER () - 1) / 100 AS part FROM came WHERE kind = 'imported') AS imported
  GROUP BY part;
  RETURN NULL;
END
$$;
CREATE TRIGGER raw_keys_came AFTER INSERT ON api_keys
REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION tell_raw_keys_came();

CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', TG_ARGV[0]);
  RETURN NULL;
END
$$;
CREATE TRIGGER keys_truncated AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION tell('everything');
CREATE TRIGGER signing_keys_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON signing_keys
FOR EACH STATEMENT EXECUTE FUNCTION tell('signing_keys');
