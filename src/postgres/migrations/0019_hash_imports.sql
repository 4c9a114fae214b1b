-- Imported keys of which only a hash is known (docs/moving.md). `digest` is then an HMAC of the hash, under the server key digest_key_id, until
-- the first successful verification adopts the key: `digest` is from then on that of the raw key, and hash_algorithm is null.
-- Nullable columns without defaults: no row is rewritten. Servers of release 0.2 and earlier find no key that is not adopted.
ALTER TABLE api_keys
  -- `HashAlgorithm` without its prefix, such as 'SHA256'; null: adopted, or imported by its raw key.
  ADD COLUMN hash_algorithm text,
  -- The row of hash_schemes by which the hash was made.
  ADD COLUMN hash_scheme_id integer,
  -- Salt and parameters of a slow hash, in the format of PHC without the output.
  ADD COLUMN hash_parameters text,
  -- With hash_parameters: the row of hash_prefix_lengths by which the key is found.
  ADD COLUMN hash_prefix_length smallint,
  -- Until when the key must be verified to live on; expire_time is not later. Null: no such time.
  ADD COLUMN adopt_before_time timestamptz,
  -- With adopt_before_time: expire_time once the key is adopted.
  ADD COLUMN adopted_expire_time timestamptz,
  ADD COLUMN adopt_time timestamptz,
  ADD CONSTRAINT api_keys_hash CHECK (
    (hash_algorithm IS NULL) = (hash_scheme_id IS NULL)
    AND (hash_algorithm IS NOT NULL OR (hash_parameters IS NULL AND adopt_before_time IS NULL))
    AND (hash_parameters IS NULL) = (hash_prefix_length IS NULL)
    AND (adopt_before_time IS NOT NULL OR adopted_expire_time IS NULL)
    AND (hash_algorithm IS NULL OR kind = 'imported')
  ) NOT VALID;

-- Keys of HMACs, encrypted under the server key wrap_key_id. `slot` limits their number.
CREATE TABLE hmac_keys (
  hmac_key_id text COLLATE "C" PRIMARY KEY,
  slot smallint NOT NULL UNIQUE CHECK (slot BETWEEN 1 AND 100),
  wrapped_key bytea NOT NULL,
  wrap_key_id text NOT NULL,
  create_time timestamptz NOT NULL,
  created_by text COLLATE "C" NOT NULL
);

-- How hashes were made: at most 8 without a salt, which a verification tries all, and 32 others. The constant texts around the raw key are
-- encrypted together, as JSON, under the server key wrap_key_id. Of two servers that add the same scheme at once, both choose the same slot.
-- scheme_id is random: none is used again, also not after a restore.
CREATE TABLE hash_schemes (
  scheme_id integer PRIMARY KEY,
  slot smallint NOT NULL UNIQUE CHECK (slot BETWEEN 1 AND 40),
  algorithm text NOT NULL,
  hmac_key_id text COLLATE "C" REFERENCES hmac_keys,
  wrapped_affixes bytea,
  wrap_key_id text,
  create_time timestamptz NOT NULL DEFAULT now(),
  CHECK ((slot <= 8) = (algorithm IN ('SHA256', 'SHA384', 'SHA512', 'SHA512_256', 'HMAC_SHA256', 'HMAC_SHA512'))),
  CHECK ((wrapped_affixes IS NULL) = (wrap_key_id IS NULL))
);

-- The lengths in bytes of the prefixes by which keys with slow hashes are found, at most 4.
CREATE TABLE hash_prefix_lengths (
  length smallint PRIMARY KEY CHECK (length BETWEEN 6 AND 64),
  slot smallint NOT NULL UNIQUE CHECK (slot BETWEEN 1 AND 4),
  create_time timestamptz NOT NULL DEFAULT now()
);

-- No key loses what it is recognized by: a way of hashing that no key has may be deleted while a key with it is imported. Foreign keys would do
-- the same, and cost an import 15 to 30 % of its time, because they test every row apart. Each statement of a function has a snapshot of its
-- own (READ COMMITTED; PostgreSQL docs, 36.7): an insertion waits for a deletion and finds nothing, or a deletion waits for it and finds the key.
CREATE FUNCTION require_hash_schemes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM added WHERE hash_scheme_id IS NOT NULL) THEN RETURN NULL; END IF;
  PERFORM FROM hash_schemes WHERE scheme_id IN (SELECT hash_scheme_id FROM added) ORDER BY scheme_id FOR KEY SHARE;
  PERFORM FROM hash_prefix_lengths WHERE length IN (SELECT hash_prefix_length FROM added) ORDER BY length FOR KEY SHARE;
  IF EXISTS (
    SELECT hash_scheme_id FROM added WHERE hash_scheme_id IS NOT NULL EXCEPT SELECT scheme_id FROM hash_schemes
  ) OR EXISTS (
    SELECT hash_prefix_length FROM added WHERE hash_prefix_length IS NOT NULL EXCEPT SELECT length FROM hash_prefix_lengths
  ) THEN
    RAISE EXCEPTION 'the hash scheme or prefix length of a key does not exist' USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END
$$;

-- Without statistics the planner would read the table instead of the indexes of 0020.
CREATE FUNCTION keep_hash_scheme() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT FROM api_keys WHERE hash_scheme_id = OLD.scheme_id) THEN
    RAISE EXCEPTION 'a key has the hash scheme %', OLD.scheme_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION keep_hash_prefix_length() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT FROM api_keys WHERE hash_prefix_length = OLD.length) THEN
    RAISE EXCEPTION 'a key has a prefix of % bytes', OLD.length USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NULL;
END
$$;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['require_hash_schemes', 'keep_hash_scheme', 'keep_hash_prefix_length'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END
$$;

CREATE TRIGGER hash_schemes_required AFTER INSERT ON api_keys
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION require_hash_schemes();
CREATE TRIGGER hash_scheme_kept AFTER DELETE ON hash_schemes FOR EACH ROW EXECUTE FUNCTION keep_hash_scheme();
CREATE TRIGGER hash_prefix_length_kept AFTER DELETE ON hash_prefix_lengths FOR EACH ROW EXECUTE FUNCTION keep_hash_prefix_length();

-- Every node must know them before a key is verified by them.
CREATE TRIGGER hmac_keys_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON hmac_keys
FOR EACH STATEMENT EXECUTE FUNCTION notify_change('hash_schemes');
CREATE TRIGGER hash_schemes_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON hash_schemes
FOR EACH STATEMENT EXECUTE FUNCTION notify_change('hash_schemes');
CREATE TRIGGER hash_prefix_lengths_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON hash_prefix_lengths
FOR EACH STATEMENT EXECUTE FUNCTION notify_change('hash_schemes');

-- Every column but last_used_time, which verification does not read.
DROP TRIGGER key_changed ON api_keys;
CREATE TRIGGER key_changed AFTER DELETE OR UPDATE OF
  key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, rotate_time, revoke_time,
  revocation_reason, revocation_description, secret_version, digest, digest_key_id, previous_secrets, disable_time, disable_reason,
  allowed_cidrs, restricted_to_actor_ids, created_by, hash_algorithm, hash_scheme_id, hash_parameters, hash_prefix_length, adopt_before_time,
  adopted_expire_time, adopt_time
ON api_keys FOR EACH ROW EXECUTE FUNCTION notify_key_changed();

-- A key with a slow hash is looked up by its prefix, one of its other digests.
CREATE OR REPLACE FUNCTION notify_raw_keys_imported() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'digests ' || string_agg(encode(looked_up, 'hex'), ','))
  FROM (
    SELECT looked_up, (row_number() OVER () - 1) / 100 AS part
    FROM (
      SELECT digest AS looked_up FROM added WHERE kind = 'imported'
      UNION ALL
      SELECT decode(other ->> 'digest', 'hex') FROM added CROSS JOIN LATERAL jsonb_array_elements(other_digests) AS other
      WHERE hash_algorithm IS NOT NULL
    ) AS each
  ) AS imported
  GROUP BY part;
  RETURN NULL;
END
$$;

-- The raw key of an adopted key may have been looked up in vain under its own digest.
CREATE FUNCTION notify_key_adopted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'digests ' || string_agg(encode(looked_up, 'hex'), ','))
  FROM (
    SELECT NEW.digest AS looked_up
    UNION ALL
    SELECT decode(other ->> 'digest', 'hex') FROM jsonb_array_elements(NEW.other_digests) AS other
  ) AS each;
  RETURN NULL;
END
$$;
CREATE TRIGGER key_adopted AFTER UPDATE OF hash_algorithm ON api_keys
FOR EACH ROW WHEN (OLD.hash_algorithm IS NOT NULL AND NEW.hash_algorithm IS NULL) EXECUTE FUNCTION notify_key_adopted();
