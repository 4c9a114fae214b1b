import type { PendingQuery, Sql } from "postgres";
import type { DisableReason, NewDelivery } from "../../webhooks/endpoint.ts";
import type {
  AttemptResult,
  Claimed,
  DispatchStore,
  EndpointBehind,
  EventRange,
  QueueStore,
} from "../../webhooks/store.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { type SecretsRow, secretColumns, secretsOf } from "./secrets.ts";

/** Longer than an attempt takes: another node repeats it then. */
const LEASE = "30 seconds";

/** Attempts that fail for this long disable an endpoint. */
const MAX_FAILING = "5 days";

const RETENTION = "30 days";

/** Deliveries that are deleted at once. */
const MAX_DELETED = 1_000;

/** Creates the store of the deliveries of webhooks in PostgreSQL. */
export function createQueueStore(database: Database): QueueStore & DispatchStore {
  return {
    behind: () =>
      database.run(
        (sql) => sql<EndpointBehind[]>`
          SELECT endpoint_id, event_types, filter, next_seq::numeric AS next_seq, size::numeric AS size FROM webhook_endpoints, audit_log
          WHERE disable_time IS NULL AND next_seq < size AND ${ownSession(sql)}`,
        "webhooks.behind",
      ),
    dispatch: async (range, endpointIds, deliveries) => {
      const rows = await database.run((sql) => dispatchRange(sql, range, endpointIds, deliveries), "webhooks.dispatch");
      return firstRow(rows).moved;
    },
    claim: async (limit, perEndpoint, inFlight) => {
      const rows = await database.run((sql) => claim(sql, limit, perEndpoint, inFlight), "webhooks.claim");
      return rows.map(({ deliveryId, url, body, attempts, lease, ...secrets }) => ({
        ...{ deliveryId, url, body, attempts, lease },
        ...secretsOf(secrets),
      }));
    },
    record: async (delivery, result) => {
      const rows = await database.run((sql) => record(sql, delivery, result), "webhooks.record");
      return rows[0]?.disableReason ?? null;
    },
    deleteOld: async () => {
      for (;;) {
        const { count } = await database.run(deleteOld, "webhooks.delete_old");
        if (count < MAX_DELETED) return;
      }
    },
    stats: async () =>
      firstRow(
        await database.run(
          (sql) => sql<{ pending: number; lag: number }[]>`
            SELECT count(*)::int AS pending, greatest(coalesce(extract(epoch FROM now() - min(next_attempt_time) FILTER (WHERE
              coalesce(lease_expire_time < now(), true))) * 1000, 0), 0)::numeric AS lag
            FROM webhook_deliveries JOIN webhook_endpoints USING (endpoint_id)
            WHERE next_attempt_time IS NOT NULL AND disable_time IS NULL AND ${ownSession(sql)}`,
          "webhooks.stats",
        ),
      ),
  };
}

/**
 * Moves the positions first, whose rows it locks: an event gets a delivery only with them. An event that is replayed, and whose delivery is
 * stored, gets attempts anew, unless one is in flight.
 */
function dispatchRange(
  sql: Sql,
  { from, next, count }: EventRange,
  endpointIds: readonly string[],
  deliveries: readonly NewDelivery[],
): PendingQuery<{ moved: number }[]> {
  const rows = deliveries.map(({ deliveryId, endpointId, seq, eventType, body }) => ({
    ...{ delivery_id: deliveryId, endpoint_id: endpointId, seq, event_type: eventType, body },
  }));
  return sql`
    WITH here AS (
      SELECT endpoint_id FROM webhook_endpoints
      WHERE endpoint_id = ANY (${[...endpointIds]}::text[]) AND next_seq = ${from}::bigint AND disable_time IS NULL
        AND (SELECT count(*) FROM audit_events WHERE seq >= ${from}::bigint AND seq < ${next}::bigint) = ${count}::int
      FOR UPDATE SKIP LOCKED
    ), moved AS (
      UPDATE webhook_endpoints SET next_seq = ${next}::bigint FROM here WHERE webhook_endpoints.endpoint_id = here.endpoint_id
      RETURNING webhook_endpoints.endpoint_id
    ), added AS (
      INSERT INTO webhook_deliveries (delivery_id, endpoint_id, seq, event_type, body)
      SELECT delivery_id, endpoint_id, seq, event_type, body
      FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        AS delivery (delivery_id uuid, endpoint_id text, seq bigint, event_type text, body text)
      JOIN moved USING (endpoint_id)
      ON CONFLICT (endpoint_id, seq) DO UPDATE SET state = 'pending', attempts = 0, next_attempt_time = now()
      WHERE coalesce(webhook_deliveries.lease_expire_time < now(), true)
    )
    SELECT count(*)::int AS moved FROM moved WHERE ${ownSession(sql)}`;
}

type ClaimedRow = Pick<Claimed, "deliveryId" | "url" | "body" | "attempts" | "lease"> & SecretsRow;

/** Endpoints with few attempts in flight come first. */
function claim(
  sql: Sql,
  limit: number,
  perEndpoint: number,
  inFlight: ReadonlyMap<string, number>,
): PendingQuery<ClaimedRow[]> {
  return sql`
    WITH due AS (
      SELECT delivery_id FROM webhook_endpoints
      LEFT JOIN jsonb_each_text(${JSON.stringify(Object.fromEntries(inFlight))}::text::jsonb) AS busy (id, count) ON id = endpoint_id
      CROSS JOIN LATERAL (
        SELECT delivery_id FROM webhook_deliveries
        WHERE webhook_deliveries.endpoint_id = webhook_endpoints.endpoint_id AND next_attempt_time <= now()
          AND coalesce(lease_expire_time < now(), true)
        ORDER BY next_attempt_time LIMIT greatest(${perEndpoint}::int - coalesce(count::int, 0), 0) FOR UPDATE SKIP LOCKED
      ) AS delivery
      WHERE disable_time IS NULL AND ${ownSession(sql)} ORDER BY coalesce(count::int, 0) LIMIT ${limit}
    )
    UPDATE webhook_deliveries SET lease_expire_time = now() + ${LEASE}::text::interval FROM due, webhook_endpoints
    WHERE webhook_deliveries.delivery_id = due.delivery_id AND webhook_endpoints.endpoint_id = webhook_deliveries.endpoint_id
    RETURNING webhook_deliveries.delivery_id, body, attempts, lease_expire_time::text AS lease, url, webhook_endpoints.endpoint_id,
      ${secretColumns(sql)}`;
}

/**
 * The lease as a text has the precision of the database. An endpoint is changed only if its state changes, and is then locked before the delivery,
 * as by a dispatch and a deletion: otherwise they could deadlock.
 */
function record(
  sql: Sql,
  { deliveryId, endpointId, lease }: Pick<Claimed, "deliveryId" | "endpointId" | "lease">,
  { state, delay, isGone, httpStatus, error, durationMs }: AttemptResult,
): PendingQuery<{ disableReason: DisableReason | null }[]> {
  const hasFailed = sql`${state !== "succeeded"}::boolean`;
  const reason = sql`CASE WHEN ${isGone}::boolean THEN 'gone' WHEN ${hasFailed} AND failing_since < now() - ${MAX_FAILING}::text::interval
    THEN 'failing' END`;
  return sql`
    WITH changed AS (
      SELECT endpoint_id FROM webhook_endpoints WHERE endpoint_id = ${endpointId}::text AND disable_time IS NULL
        AND ((failing_since IS NULL) = ${hasFailed} OR ${reason} IS NOT NULL)
      FOR NO KEY UPDATE
    ), delivery AS (
      UPDATE webhook_deliveries SET state = ${state}::text, attempts = attempts + 1, lease_expire_time = NULL,
        next_attempt_time = now() + ${delay}::float8 * interval '1 millisecond'
      WHERE delivery_id = ${deliveryId}::uuid AND lease_expire_time = ${lease}::text::timestamptz AND ${ownSession(sql)}
        AND (SELECT count(*) FROM changed) >= 0
      RETURNING delivery_id, endpoint_id
    ), attempt AS (
      INSERT INTO webhook_attempts (delivery_id, http_status, error, duration_ms)
      SELECT delivery_id, ${httpStatus}::int, ${error}::text, ${durationMs}::int FROM delivery
    )
    UPDATE webhook_endpoints SET
      failing_since = CASE WHEN ${hasFailed} THEN coalesce(failing_since, now()) END,
      disable_time = CASE WHEN ${reason} IS NOT NULL THEN date_trunc('milliseconds', now()) END,
      disable_reason = ${reason}
    FROM delivery JOIN changed USING (endpoint_id) WHERE webhook_endpoints.endpoint_id = changed.endpoint_id
    RETURNING disable_reason`;
}

/** Their attempts are deleted with them. */
function deleteOld(sql: Sql) {
  return sql`
    DELETE FROM webhook_deliveries WHERE delivery_id = ANY (ARRAY (
      SELECT delivery_id FROM webhook_deliveries
      WHERE next_attempt_time IS NULL AND create_time < now() - ${RETENTION}::text::interval AND ${ownSession(sql)} LIMIT ${MAX_DELETED}
    ))`;
}
