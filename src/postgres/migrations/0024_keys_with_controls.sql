-- one by one
--
-- In place of the index of 0016, which no update of disable_time can be heap-only with: a BRIN index permits it from PostgreSQL 16 on. The
-- expression has the place of `revoke_time IS NULL`, by which the planner would take a list index. What was inserted since the last VACUUM is
-- not summarized, and read.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_with_controls;
CREATE INDEX CONCURRENTLY api_keys_with_controls ON api_keys USING brin ((CASE WHEN revoke_time IS NULL THEN 1 END))
  WHERE disable_time IS NOT NULL OR allowed_cidrs IS NOT NULL OR restricted_to_actor_ids IS NOT NULL;
