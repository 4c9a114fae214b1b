-- one by one
--
-- Lists by a range of times: "expires within 30 days", "not used for 90 days". Pages are ordered by key id, so an index by time finds all
-- matches before it knows the newest, and an index by key id reads every key before the first match. These indexes have the order of the
-- page within each week; a page merges the weeks of its range (postgres/list-by-week.ts). What comes last is tested within the index.

-- At most last_used_time, and advanced only when it is a day behind: an index that contains last_used_time itself would end heap-only
-- updates of every recorded use. Null for keys that this release has not recorded a use of; the lists test last_used_time in the row.
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS last_used_mark timestamptz;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_by_use;
CREATE INDEX CONCURRENTLY api_keys_newest_by_use ON api_keys
  (kind, coalesce(date_bin('7 days', last_used_mark, '2000-01-03T00:00:00Z'), '1970-01-01T00:00:00Z'), uuid_send(key_id) DESC,
   coalesce(last_used_mark, '1970-01-01T00:00:00Z'), coalesce(expire_time, 'infinity'), revoke_time);

DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_by_expiry;
CREATE INDEX CONCURRENTLY api_keys_newest_by_expiry ON api_keys
  (kind, date_bin('7 days', expire_time, '2000-01-03T00:00:00Z'), uuid_send(key_id) DESC, coalesce(expire_time, 'infinity'), revoke_time)
  WHERE expire_time IS NOT NULL;
