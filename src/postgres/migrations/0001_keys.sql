-- Keys of both kinds in one table: key_id is one space, and revoking by id must not ask which kind it is.
CREATE TABLE api_keys (
  key_id uuid PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('issued', 'imported')),
  name text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  scopes text[] NOT NULL,
  metadata jsonb NOT NULL CHECK (jsonb_typeof(metadata) = 'object'),
  hint text NOT NULL,
  create_time timestamptz NOT NULL,
  update_time timestamptz NOT NULL,
  expire_time timestamptz,
  last_used_time timestamptz,
  rotate_time timestamptz,
  revoke_time timestamptz,
  revocation_reason text,
  revocation_description text,

  -- The current secret: HMAC-SHA-256 under the server key digest_key_id. Older secrets that are in their grace, newest first:
  -- [{"version": 1, "digest": hex, "digest_key_id": text, "expire_time": timestamptz}]
  secret_version integer NOT NULL DEFAULT 1,
  digest bytea NOT NULL,
  digest_key_id text NOT NULL,
  previous_secrets jsonb NOT NULL DEFAULT '[]',

  -- AIP-155: identity of the request that made the key, and a keyed hash of what it asked.
  request_id text,
  request_fingerprint bytea,

  CHECK ((revoke_time IS NULL) = (revocation_reason IS NULL)),
  CHECK ((request_id IS NULL) = (request_fingerprint IS NULL))
);

-- One record for one raw key. An issued secret is looked up by the key_id that it carries.
CREATE UNIQUE INDEX api_keys_raw_key ON api_keys (digest) WHERE kind = 'imported';
CREATE UNIQUE INDEX api_keys_request ON api_keys (kind, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX api_keys_list ON api_keys (kind, key_id DESC);
CREATE INDEX api_keys_list_by_actor ON api_keys (kind, actor_id, key_id DESC);
