-- Digests of keys that are gone. 0007 leaves one behind when the transaction that deletes its key is open while 0007 runs: the trigger ran
-- before the digest was inserted, and the cleanup of 0007 still saw the key. The raw key could not be imported again. All such transactions
-- have ended: 0009 waited for them, by its lock on api_keys.
DELETE FROM raw_key_digests WHERE NOT EXISTS (SELECT FROM api_keys WHERE api_keys.key_id = raw_key_digests.key_id);
