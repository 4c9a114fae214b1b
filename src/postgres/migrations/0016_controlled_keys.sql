-- one by one
--
-- The keys with a control that servers of release 0.2 and earlier do not apply (0017), so that the trigger on nodes
-- reads these alone. It needs not read those that were revoked over the years.
DO $$ BEGIN IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('api_keys_controlled') AND NOT indisvalid) THEN DROP INDEX api_keys_controlled; END IF; END $$;
CREATE INDEX CONCURRENTLY IF NOT EXISTS api_keys_controlled ON api_keys (key_id) WHERE (disable_time IS NOT NULL OR allowed_cidrs IS NOT NULL OR restricted_to_actor_ids IS NOT NULL) AND revoke_time IS NULL;
