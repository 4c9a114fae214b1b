-- one by one
--
-- The digests of the keys that were imported before 0006. Its triggers add those of later ones.
INSERT INTO raw_key_digests (digest, key_id) SELECT digest, key_id FROM api_keys WHERE kind = 'imported' ON CONFLICT DO NOTHING;

-- A key that was deleted while the statement above ran: it saw the key, and the trigger did not see the digest.
DELETE FROM raw_key_digests WHERE NOT EXISTS (SELECT FROM api_keys WHERE api_keys.key_id = raw_key_digests.key_id);

-- A request is found by its identifier alone: no other index begins with request_id. An index that begins with kind is taken for
-- one that finds a single row when the statistics know of no key of that kind, and then every key of that kind is read.
-- The previous version searches this index by both columns. Only an unfinished one is dropped first, since the old one may be gone.
DO $$ BEGIN IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('api_keys_request_id') AND NOT indisvalid) THEN DROP INDEX api_keys_request_id; END IF; END $$;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS api_keys_request_id ON api_keys (request_id, kind) WHERE request_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS api_keys_request;
