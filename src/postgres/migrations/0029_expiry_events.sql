-- Events key.expiring and key.expired (docs/audit.md, "Expiry"). Keys that have expired before this migration have none.

-- How far the keys were searched for each threshold, which is a time before the expiry; 0 is the expiry itself.
CREATE TABLE expiry_sweeps (
  threshold interval PRIMARY KEY CHECK (threshold >= '0'),
  -- The last key that was found, in the order of api_keys_by_expiry.
  expire_time timestamptz NOT NULL,
  key_id uuid NOT NULL,
  -- Where the audit log continues with changes of keys: one that is committed after its place in the index was passed is found there.
  next_seq bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO expiry_sweeps SELECT '0', now(), '00000000-0000-0000-0000-000000000000', size FROM audit_log;

-- The smallest threshold with an event for this expiry of the key.
CREATE TABLE expiry_notices (
  key_id uuid,
  expire_time timestamptz,
  threshold interval NOT NULL,
  PRIMARY KEY (key_id, expire_time)
);
CREATE INDEX expiry_notices_expire_time ON expiry_notices (expire_time);

-- Records what is due, at most twice `max_keys` events for each threshold, and returns the numbers of events, and the milliseconds for which the
-- next key is due. The lock of the sweep of 0 serializes the runs of all nodes. Only the clock of the database counts. A nested loop over
-- the CTEs, which have no statistics, would be quadratic.
CREATE FUNCTION audit_expiry(warnings interval[], max_keys integer, OUT expiring integer, OUT expired integer, OUT lag float8) LANGUAGE plpgsql
SECURITY DEFINER SET enable_seqscan = off SET enable_nestloop = off SET jit = off AS $$
DECLARE
  thresholds CONSTANT interval[] := warnings || interval '0';
  sweep expiry_sweeps;
  was expiry_sweeps;
  clock timestamptz;
  horizon timestamptz;
  reached record;
  changed record;
  recorded record;
BEGIN
  expiring := 0;
  expired := 0;
  lag := 0;
  INSERT INTO expiry_sweeps SELECT DISTINCT warning, clock_timestamp(), uuid '00000000-0000-0000-0000-000000000000', size
  FROM audit_log CROSS JOIN unnest(warnings) AS warning ORDER BY warning ON CONFLICT DO NOTHING;

  FOR sweep IN SELECT * FROM expiry_sweeps WHERE threshold = ANY (thresholds) ORDER BY threshold FOR UPDATE LOOP
    was := sweep;
    clock := clock_timestamp();
    horizon := clock + sweep.threshold;
    -- After a failover the clock may be behind: what is between is searched again, because changes there were not due yet.
    sweep.expire_time := least(sweep.expire_time, horizon);

    SELECT array_agg(key_id ORDER BY expire_time, key_id) AS ids, max(expire_time) AS expire_time, count(*) AS count INTO reached FROM (
      SELECT key.* FROM unnest('{issued,imported}'::text[]) AS kind CROSS JOIN LATERAL (
        SELECT key_id, expire_time FROM api_keys
        WHERE api_keys.kind = kind.kind AND coalesce(expire_time, 'infinity') <= horizon AND (coalesce(expire_time, 'infinity'), uuid_send(key_id))
          > (CASE WHEN sweep.threshold = '0' THEN sweep.expire_time ELSE greatest(sweep.expire_time, clock) END, uuid_send(sweep.key_id))
        ORDER BY coalesce(expire_time, 'infinity'), uuid_send(key_id) LIMIT max_keys
      ) AS key
      ORDER BY expire_time, key_id LIMIT max_keys
    ) AS next;
    IF reached.count > 0 THEN
      sweep.expire_time := reached.expire_time;
      sweep.key_id := reached.ids[reached.count];
    END IF;
    IF reached.count = max_keys THEN
      lag := greatest(lag, extract(epoch FROM horizon - reached.expire_time) * 1000);
    END IF;

    -- Every change of an expiry, whatever its action.
    SELECT least(size, sweep.next_seq + 10000) INTO STRICT sweep.next_seq FROM audit_log;
    SELECT array_agg(key_id) AS ids, max(seq) AS seq, max(event.time) AS time, count(*) AS count INTO changed FROM (
      SELECT seq, key_id, audit_events.time FROM audit_events
      WHERE seq >= was.next_seq AND seq < sweep.next_seq AND action NOT IN ('key.expiring', 'key.expired') AND key_id IS NOT NULL
        AND (after ->> 'expire_time')::timestamptz <= horizon
      ORDER BY audit_events.seq LIMIT max_keys
    ) AS event;
    IF changed.count = max_keys THEN
      sweep.next_seq := changed.seq + 1;
      lag := greatest(lag, extract(epoch FROM clock - changed.time) * 1000);
    END IF;

    IF reached.count + changed.count > 0 THEN
      -- Locks keys in the order of other changes, so that the event of a revocation does not come before that of an expiry.
      WITH due AS MATERIALIZED (
        SELECT key_id, actor_id, create_time, expire_time FROM api_keys
        WHERE key_id = ANY (reached.ids || changed.ids) AND revoke_time IS NULL AND expire_time <= horizon
          AND (sweep.threshold = '0' OR expire_time > clock)
        ORDER BY key_id FOR SHARE
      ), noticed AS (
        INSERT INTO expiry_notices AS notice (key_id, expire_time, threshold)
        SELECT key_id, expire_time, smallest.threshold FROM due CROSS JOIN LATERAL (
          SELECT min(threshold) AS threshold FROM unnest(thresholds) AS threshold
          WHERE expire_time - clock <= threshold AND (threshold = '0' OR threshold < expire_time - create_time)
        ) AS smallest
        WHERE smallest.threshold IS NOT NULL
        ON CONFLICT (key_id, expire_time) DO UPDATE SET threshold = excluded.threshold WHERE notice.threshold > excluded.threshold
        RETURNING *
      ), event AS (
        INSERT INTO audit_pending (action, key_id, actor_id, call, after)
        SELECT CASE threshold WHEN '0' THEN 'key.expired' ELSE 'key.expiring' END, key_id, actor_id, audit_call(),
          jsonb_build_object('expire_time', expire_time)
          || CASE threshold WHEN '0' THEN '{}' ELSE jsonb_build_object('threshold', trim_scale(extract(epoch FROM threshold)) || 's') END
        FROM noticed JOIN due USING (key_id, expire_time) ORDER BY expire_time, key_id
        RETURNING action
      )
      SELECT count(*) FILTER (WHERE action = 'key.expiring') AS expiring, count(*) FILTER (WHERE action = 'key.expired') AS expired
      INTO recorded FROM event;
      expiring := expiring + recorded.expiring;
      expired := expired + recorded.expired;
    END IF;

    IF sweep.threshold = '0' THEN
      DELETE FROM expiry_notices WHERE key_id = ANY (ARRAY (
        SELECT key_id FROM audit_events WHERE seq >= was.next_seq AND seq < sweep.next_seq AND action = 'key.deleted'));
    END IF;
    IF sweep IS DISTINCT FROM was THEN
      UPDATE expiry_sweeps SET expire_time = sweep.expire_time, key_id = sweep.key_id, next_seq = sweep.next_seq
      WHERE threshold = sweep.threshold;
    END IF;
  END LOOP;

  -- Nothing finds these keys again, unless their expiry is moved.
  IF lag = 0 THEN
    DELETE FROM expiry_notices WHERE ctid = ANY (ARRAY (
      SELECT ctid FROM expiry_notices WHERE expire_time < clock - interval '7 days' ORDER BY expire_time LIMIT max_keys));
  END IF;
END
$$;

-- The function runs as the owner: see 0006 and 0026.
DO $$
BEGIN
  EXECUTE format('ALTER FUNCTION audit_expiry SET search_path = %I, pg_temp', current_schema());
END
$$;
ALTER FUNCTION audit_expiry SET TimeZone = 'UTC';
REVOKE ALL ON FUNCTION audit_expiry FROM PUBLIC;
