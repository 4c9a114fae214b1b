-- one by one
--
-- Like the index of 0024, for the trigger of 0032.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_with_limits;
CREATE INDEX CONCURRENTLY api_keys_with_limits ON api_keys USING brin ((CASE WHEN revoke_time IS NULL THEN 1 END)) WHERE rate_limits IS NOT NULL OR quotas IS NOT NULL;
