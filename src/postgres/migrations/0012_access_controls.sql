-- Controls on a key (docs/concepts.md). Nullable columns without defaults: no row is rewritten. Servers of release 0.2 and earlier do not read
-- them: a node announces in `nodes.verification_checks` which of them it applies.
ALTER TABLE api_keys
  ADD COLUMN disable_time timestamptz,
  ADD COLUMN disable_reason text,
  -- Canonical CIDR blocks; null: any address.
  ADD COLUMN allowed_cidrs text[],
  -- The actors to whose keys an admin token is restricted; null: any.
  ADD COLUMN restricted_to_actor_ids text[],
  -- Such as 'admin-token:<key_id>'; null: created by an earlier release.
  ADD COLUMN created_by text COLLATE "C",
  ADD CONSTRAINT api_keys_disabled CHECK (disable_reason IS NULL OR disable_time IS NOT NULL) NOT VALID;

ALTER TABLE nodes ADD COLUMN verification_checks text[] NOT NULL DEFAULT '{}';

-- Every column but last_used_time, which verification does not read.
DROP TRIGGER key_changed ON api_keys;
CREATE TRIGGER key_changed AFTER DELETE OR UPDATE OF
  key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, rotate_time, revoke_time,
  revocation_reason, revocation_description, secret_version, digest, digest_key_id, previous_secrets, disable_time, disable_reason,
  allowed_cidrs, restricted_to_actor_ids, created_by
ON api_keys FOR EACH ROW EXECUTE FUNCTION notify_key_changed();
