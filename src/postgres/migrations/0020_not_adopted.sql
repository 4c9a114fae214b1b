-- one by one
--
-- The keys of which only a hash is known, in the order of the lists, and by what recognizes them.
DROP INDEX CONCURRENTLY IF EXISTS api_keys_not_adopted;
CREATE INDEX CONCURRENTLY api_keys_not_adopted ON api_keys (kind, uuid_send(key_id) DESC) WHERE hash_algorithm IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_of_hash_scheme;
CREATE INDEX CONCURRENTLY api_keys_of_hash_scheme ON api_keys (hash_scheme_id) WHERE hash_scheme_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS api_keys_of_hash_prefix_length;
CREATE INDEX CONCURRENTLY api_keys_of_hash_prefix_length ON api_keys (hash_prefix_length) WHERE hash_prefix_length IS NOT NULL;
