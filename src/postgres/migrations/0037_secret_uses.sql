-- When each secret in its grace period was last used, by its version, and from where the key was. Nullable columns without a default: no row is
-- rewritten. Not in the columns of key_changed: verification does not read them. Releases before 0.4 neither read nor write them.
ALTER TABLE api_keys ADD COLUMN secret_uses jsonb, ADD COLUMN last_used_address text;

-- The triggers of 0026: like last_used_time, the new columns are in no event.
DROP TRIGGER key_id_changed_audited ON api_keys;
CREATE TRIGGER key_id_changed_audited AFTER UPDATE OF key_id ON api_keys
FOR EACH ROW WHEN (OLD.key_id <> NEW.key_id) EXECUTE FUNCTION audit_key_id_changed(
  'digest', 'previous_secrets', 'other_digests', 'hash_parameters', 'request_id', 'request_fingerprint', 'last_used_time', 'secret_uses',
  'last_used_address');
DROP TRIGGER keys_deleted_audited ON api_keys;
CREATE TRIGGER keys_deleted_audited AFTER DELETE ON api_keys REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION audit_keys_deleted(
  'digest', 'previous_secrets', 'other_digests', 'hash_parameters', 'request_id', 'request_fingerprint', 'last_used_time', 'secret_uses',
  'last_used_address');
