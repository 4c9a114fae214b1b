-- one by one
--
-- The orders of lists (order_by). An absent time is 'infinity', so that one expression has the order, and the keys without a value are one range.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_by_expiry;
CREATE INDEX CONCURRENTLY api_keys_by_expiry ON api_keys (kind, coalesce(expire_time, 'infinity'), uuid_send(key_id));

DROP INDEX CONCURRENTLY IF EXISTS api_keys_by_use;
CREATE INDEX CONCURRENTLY api_keys_by_use ON api_keys (kind, coalesce(last_used_time, 'infinity'), uuid_send(key_id));

DROP INDEX CONCURRENTLY IF EXISTS api_keys_by_name;
CREATE INDEX CONCURRENTLY api_keys_by_name ON api_keys (kind, name, uuid_send(key_id));

-- Servers of release 0.2 use the first two, and find the same rows by the indexes above. No release has used the others.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_expire_time;
DROP INDEX CONCURRENTLY IF EXISTS api_keys_name;
DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_by_use;
DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_by_expiry;
ALTER TABLE api_keys DROP COLUMN IF EXISTS last_used_mark;

-- For the statistics of the expressions.
ANALYZE api_keys;
