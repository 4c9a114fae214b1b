-- one by one
--
-- Upper bound of the milliseconds by which the clock of the node is ahead of the database's, as measured before its last renewal. Null: a
-- node of an earlier release, which does not measure it.
ALTER TABLE nodes ADD COLUMN IF NOT EXISTS clock_ahead_ms float8;

-- The keys that an admin token has created, for the revocation with descendants.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_created_by;
CREATE INDEX CONCURRENTLY api_keys_created_by ON api_keys (created_by) WHERE revoke_time IS NULL AND created_by ^@ 'admin-token:';
