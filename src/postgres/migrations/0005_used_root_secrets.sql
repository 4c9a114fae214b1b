-- Root secrets that a server has had as its current one, by the public id of their server key for digests. One of the configuration
-- that is not here is staged: it is accepted, but nothing was made under it (`keyhold secrets list`).
CREATE TABLE used_root_secrets (
  digest_key_id text PRIMARY KEY,
  first_use_time timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Those that the keys of earlier releases were made under.
INSERT INTO used_root_secrets (digest_key_id)
SELECT digest_key_id FROM api_keys
UNION
SELECT secret ->> 'digest_key_id' FROM api_keys, jsonb_array_elements(previous_secrets) AS secret;
