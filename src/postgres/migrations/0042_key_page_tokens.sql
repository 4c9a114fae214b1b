-- one by one
--
-- The index of 0027 with the scope keyhold:key-pages.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_admin_tokens;
CREATE INDEX CONCURRENTLY api_keys_admin_tokens ON api_keys (expire_time)
  WHERE revoke_time IS NULL AND scopes && '{keyhold:admin,keyhold:keys.read,keyhold:keys.write,keyhold:keys.issue,keyhold:keys.import,keyhold:keys.update,keyhold:keys.rotate,keyhold:keys.revoke,keyhold:keys.disable,keyhold:keys.delete,keyhold:verify,keyhold:derive,keyhold:audit,keyhold:webhooks,keyhold:key-pages}';
