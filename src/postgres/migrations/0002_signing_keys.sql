-- Ed25519 keys that sign derived JWTs. The private half is wrapped under the server key wrap_key_id. It stays when the key is
-- retired: that it unwraps is what shows that the public half is ours too, and was not put here by someone with the database.
CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  public_jwk jsonb NOT NULL,
  wrapped bytea NOT NULL,
  wrap_key_id text NOT NULL,
  create_time timestamptz NOT NULL,
  retire_time timestamptz,
  -- No token signed with this key expires later: it is moved forward before such a token is signed.
  tokens_expire_time timestamptz
);

-- One key signs at a time.
CREATE UNIQUE INDEX signing_keys_active ON signing_keys ((true)) WHERE retire_time IS NULL;
