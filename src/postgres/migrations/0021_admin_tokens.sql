-- one by one
--
-- The keys with scopes over Keyhold (domain/admin-scopes.ts), so that each server can look every few minutes for those that expire soon.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_admin_tokens;
CREATE INDEX CONCURRENTLY api_keys_admin_tokens ON api_keys (expire_time)
  WHERE revoke_time IS NULL AND scopes && '{keyhold:admin,keyhold:keys.read,keyhold:keys.write,keyhold:keys.issue,keyhold:keys.import,keyhold:keys.update,keyhold:keys.rotate,keyhold:keys.revoke,keyhold:keys.disable,keyhold:keys.delete,keyhold:verify,keyhold:derive}';
