-- One row for each digest of each raw key: the one in api_keys.digest, and those under the other root secrets that the importing
-- server knew. The primary key keeps one raw key from being stored twice, by servers whose current root secrets differ too, as long
-- as they know one root secret in common. Verification finds imported keys here: `digest = ANY (…)` matches one index and no other,
-- whereas `kind = 'imported' AND digest = ANY (…)` on api_keys matches every index that begins with kind.
CREATE TABLE raw_key_digests (
  digest bytea PRIMARY KEY,
  key_id uuid NOT NULL
);

-- Of an imported key, its digests under the other root secrets: [{"digest": hex, "digest_key_id": text}]. The previous version
-- leaves it out.
ALTER TABLE api_keys ADD COLUMN other_digests jsonb;

-- Triggers keep the table, so that it holds what the previous version stores too. They run as the owner of the schema: servers need
-- no right to write it, and the previous version has none.
CREATE FUNCTION raw_key_digests_of(digest bytea, other_digests jsonb) RETURNS SETOF bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT digest
  UNION ALL
  SELECT decode(other ->> 'digest', 'hex') FROM jsonb_array_elements(other_digests) AS other
$$;

-- In the order of the digests, so that two statements with the same raw keys cannot deadlock.
CREATE FUNCTION add_raw_key_digests() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO raw_key_digests (digest, key_id)
  SELECT of_key.digest, added.key_id
  FROM added CROSS JOIN LATERAL raw_key_digests_of(added.digest, added.other_digests) AS of_key (digest)
  WHERE added.kind = 'imported' ORDER BY of_key.digest;
  RETURN NULL;
END
$$;

CREATE FUNCTION replace_raw_key_digests() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET enable_seqscan = off AS $$
BEGIN
  IF OLD.kind = 'imported' THEN
    DELETE FROM raw_key_digests
    WHERE digest = ANY (ARRAY (SELECT raw_key_digests_of(OLD.digest, OLD.other_digests))) AND key_id = OLD.key_id;
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.kind = 'imported' THEN
    INSERT INTO raw_key_digests (digest, key_id) SELECT raw_key_digests_of(NEW.digest, NEW.other_digests), NEW.key_id;
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION truncate_raw_key_digests() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  TRUNCATE raw_key_digests;
  RETURN NULL;
END
$$;

-- These functions run as the owner, so their search_path is fixed: a caller could have tables of these names in another schema.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['add_raw_key_digests', 'replace_raw_key_digests', 'truncate_raw_key_digests'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END
$$;

CREATE TRIGGER raw_keys_added AFTER INSERT ON api_keys
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_raw_key_digests();

-- For changes by hand: the service never changes these columns of an imported key.
CREATE TRIGGER raw_key_changed AFTER UPDATE OF key_id, kind, digest, other_digests ON api_keys
FOR EACH ROW WHEN (OLD.kind = 'imported' OR NEW.kind = 'imported') EXECUTE FUNCTION replace_raw_key_digests();

CREATE TRIGGER raw_key_deleted AFTER DELETE ON api_keys
FOR EACH ROW WHEN (OLD.kind = 'imported') EXECUTE FUNCTION replace_raw_key_digests();

CREATE TRIGGER raw_keys_truncated AFTER TRUNCATE ON api_keys
FOR EACH STATEMENT EXECUTE FUNCTION truncate_raw_key_digests();
