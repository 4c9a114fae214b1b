-- Sessions of the key page (docs/key-page.md), so that each URL opens its session once, and for the audit log.
CREATE TABLE key_page_sessions (
  session_id uuid PRIMARY KEY,
  actor_id text COLLATE "C" NOT NULL,
  permissions text[] NOT NULL,
  allowed_scopes text[] NOT NULL,
  -- Null: keys need not expire.
  max_ttl interval,
  return_url text,
  create_time timestamptz NOT NULL DEFAULT now(),
  -- When the URL expires.
  expire_time timestamptz NOT NULL,
  -- Null: it was not opened.
  open_time timestamptz
);
CREATE INDEX key_page_sessions_expiry ON key_page_sessions (expire_time);

-- That expired ones are removed is no event.
CREATE TRIGGER key_page_session_audited AFTER INSERT OR UPDATE ON key_page_sessions
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('key_page_session', 'session_id', 'opened');
CREATE TRIGGER key_page_sessions_truncated_audited AFTER TRUNCATE ON key_page_sessions
FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('key_page_sessions');
