-- one by one
--
-- The keys of which only a hash is known, in the order of the lists, and by the scheme of their hashes.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_not_adopted;
CREATE INDEX CONCURRENTLY api_keys_not_adopted ON api_keys (kind, uuid_send(key_id) DESC) WHERE hash_algorithm IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_hash_scheme;
CREATE INDEX CONCURRENTLY api_keys_hash_scheme ON api_keys (hash_scheme_id) WHERE hash_algorithm IS NOT NULL;
