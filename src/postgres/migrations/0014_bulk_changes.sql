-- Operations of BulkRevokeApiKeys and BulkDisableApiKeys (docs/concepts.md). The keys are changed in ascending order of key_id, some dozens a
-- transaction, which also advances after_key_id: the operation continues after a crash of any process, and changes no key twice. The
-- filter and the texts are not stored: each call brings them again, and the fingerprint compares them.
CREATE TABLE bulk_changes (
  request_id text COLLATE "C" PRIMARY KEY,
  verb text NOT NULL CHECK (verb IN ('revoke', 'disable')),
  -- A keyed hash of the request and its caller.
  fingerprint bytea NOT NULL,
  -- Such as 'admin-token:<key_id>'. For people.
  caller text NOT NULL,
  -- The `now` of the filter.
  start_time timestamptz NOT NULL,
  -- The newest key that matched at the start, the last to be changed; null: none matched.
  through_key_id uuid,
  -- The last key that was examined.
  after_key_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  matched_count integer NOT NULL,
  changed_count integer NOT NULL DEFAULT 0,
  done boolean NOT NULL,
  update_time timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
