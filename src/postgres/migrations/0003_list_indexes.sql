-- one by one
--
-- Lists do not grow with the number of keys. They go newest first, and their indexes have uuid_send(key_id) for that: the order of
-- key_id, but not to be had from the primary key. Else the planner, which thinks that matches are spread evenly, reads the primary
-- key backwards, and with it every row that is newer than the first match.
--
-- What comes last tells the status: keys of another one are skipped within the index, at a fifth of what it takes to look at their
-- rows.
--
-- The version before lists by key_id: without its two indexes it reads the primary key, or sorts.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest;
CREATE INDEX CONCURRENTLY api_keys_newest ON api_keys (kind, uuid_send(key_id) DESC, coalesce(expire_time, 'infinity'), revoke_time);

DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_by_actor;
CREATE INDEX CONCURRENTLY api_keys_newest_by_actor ON api_keys
  (kind, actor_id, uuid_send(key_id) DESC, coalesce(expire_time, 'infinity'), revoke_time);

DROP INDEX CONCURRENTLY IF EXISTS api_keys_list;
DROP INDEX CONCURRENTLY IF EXISTS api_keys_list_by_actor;

-- Few of many: the revoked keys, and those that may expire.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_revoked;
CREATE INDEX CONCURRENTLY api_keys_newest_revoked ON api_keys (kind, uuid_send(key_id) DESC, revocation_reason)
  WHERE revoke_time IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_newest_expiring;
CREATE INDEX CONCURRENTLY api_keys_newest_expiring ON api_keys (kind, uuid_send(key_id) DESC, coalesce(expire_time, 'infinity'))
  WHERE revoke_time IS NULL AND expire_time IS NOT NULL;

-- For what few keys have. What many have is soon found in the order of the list, and the planner knows which is which: but not of
-- scopes, where it takes any that its statistics lack for that of one key in 200, and an index would not be used. Of the work that
-- the database has with 1000 imports, the index of names adds 14 %, that of metadata 10 %, and all the others together 3 %.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_expire_time;
CREATE INDEX CONCURRENTLY api_keys_expire_time ON api_keys (kind, coalesce(expire_time, 'infinity'))
  WHERE expire_time IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_name;
CREATE INDEX CONCURRENTLY api_keys_name ON api_keys (kind, name);

DROP INDEX CONCURRENTLY IF EXISTS api_keys_metadata;
CREATE INDEX CONCURRENTLY api_keys_metadata ON api_keys USING gin (metadata jsonb_path_ops);
