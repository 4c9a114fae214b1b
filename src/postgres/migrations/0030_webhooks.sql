-- Webhooks (docs/webhooks.md). The audit log is the outbox: each endpoint has the position up to which its deliveries are stored.
CREATE TABLE webhook_endpoints (
  endpoint_id text COLLATE "C" PRIMARY KEY,
  url text NOT NULL,
  event_types text[] NOT NULL,
  filter text NOT NULL,
  description text NOT NULL,
  create_time timestamptz NOT NULL,
  created_by text NOT NULL,
  update_time timestamptz NOT NULL,
  -- Null: it is not disabled.
  disable_time timestamptz,
  disable_reason text,
  -- The secret of signatures, encrypted under a root secret (domain/wrapped-secret.ts), and the previous one in its grace period.
  wrapped_secret bytea NOT NULL,
  wrap_key_id text NOT NULL,
  secret_rotate_time timestamptz,
  old_wrapped_secret bytea,
  old_wrap_key_id text,
  old_secret_expire_time timestamptz,
  -- The first event without a delivery.
  next_seq bigint NOT NULL,
  -- When the first of the attempts failed after which none has succeeded.
  failing_since timestamptz,
  CHECK ((disable_time IS NULL) = (disable_reason IS NULL))
) WITH (fillfactor = 50);

CREATE TABLE webhook_deliveries (
  -- `webhook-id`; version 7, so that its order is that of the creation.
  delivery_id uuid PRIMARY KEY,
  endpoint_id text COLLATE "C" NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  -- Null: a test event.
  seq bigint,
  event_type text NOT NULL,
  body text NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
  create_time timestamptz NOT NULL DEFAULT now(),
  -- Null: no attempt follows.
  next_attempt_time timestamptz DEFAULT now(),
  -- The attempts since the delivery was created or requested again.
  attempts integer NOT NULL DEFAULT 0,
  -- While it is in the future, an attempt is in flight.
  lease_expire_time timestamptz,
  UNIQUE (endpoint_id, seq),
  CHECK ((state = 'pending') = (next_attempt_time IS NOT NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_time) WHERE next_attempt_time IS NOT NULL;
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, delivery_id);
CREATE INDEX webhook_deliveries_done ON webhook_deliveries (create_time) WHERE next_attempt_time IS NULL;

CREATE TABLE webhook_attempts (
  attempt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id uuid NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE,
  time timestamptz NOT NULL DEFAULT now(),
  -- Null: there was no response.
  http_status integer,
  -- Null: it succeeded.
  error text,
  duration_ms integer NOT NULL
);
CREATE INDEX webhook_attempts_delivery ON webhook_attempts (delivery_id, attempt_id);

-- Positions and failures are the work of servers, and no events; moving the position back is.
CREATE TRIGGER webhook_endpoint_audited AFTER INSERT OR DELETE ON webhook_endpoints
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', '', 'wrapped_secret', 'old_wrapped_secret', 'next_seq', 'failing_since');
CREATE TRIGGER webhook_endpoint_update_audited AFTER UPDATE OF endpoint_id, url, event_types, filter, description, create_time, created_by, update_time
ON webhook_endpoints FOR EACH ROW WHEN ((OLD.disable_time IS NULL) = (NEW.disable_time IS NULL))
EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'updated', 'wrapped_secret', 'old_wrapped_secret', 'next_seq', 'failing_since');
CREATE TRIGGER webhook_endpoint_disabling_audited AFTER UPDATE OF disable_time, disable_reason ON webhook_endpoints
FOR EACH ROW WHEN (OLD.disable_time IS NULL AND NEW.disable_time IS NOT NULL)
EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'disabled', 'wrapped_secret', 'old_wrapped_secret', 'next_seq', 'failing_since');
CREATE TRIGGER webhook_endpoint_enabling_audited AFTER UPDATE OF disable_time, disable_reason ON webhook_endpoints
FOR EACH ROW WHEN (OLD.disable_time IS NOT NULL AND NEW.disable_time IS NULL)
EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'enabled', 'wrapped_secret', 'old_wrapped_secret', 'next_seq', 'failing_since');
CREATE TRIGGER webhook_endpoint_rotation_audited AFTER UPDATE OF secret_rotate_time ON webhook_endpoints
FOR EACH ROW EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'secret_rotated', 'wrapped_secret', 'old_wrapped_secret', 'next_seq',
  'failing_since');
CREATE TRIGGER webhook_endpoint_rewrap_audited AFTER UPDATE OF wrap_key_id, old_wrap_key_id ON webhook_endpoints
FOR EACH ROW WHEN (OLD.secret_rotate_time IS NOT DISTINCT FROM NEW.secret_rotate_time)
EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'rewrapped', 'wrapped_secret', 'old_wrapped_secret', 'next_seq', 'failing_since');
CREATE TRIGGER webhook_endpoint_replay_audited AFTER UPDATE OF next_seq ON webhook_endpoints
FOR EACH ROW WHEN (NEW.next_seq < OLD.next_seq)
EXECUTE FUNCTION audit_row_changed('webhook_endpoint', 'endpoint_id', 'replayed', 'wrapped_secret', 'old_wrapped_secret', 'failing_since');
CREATE TRIGGER webhook_endpoints_truncated_audited AFTER TRUNCATE ON webhook_endpoints
FOR EACH STATEMENT EXECUTE FUNCTION audit_truncated('webhook_endpoints');
