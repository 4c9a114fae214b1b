import type { Fragment, PendingQuery, Sql } from "postgres";
import type { Principal } from "../../domain/principal.ts";
import { type Attempt, type Delivery, MAX_ENDPOINTS, type WebhookEndpoint } from "../../webhooks/endpoint.ts";
import type { EndpointStore, SecretStore } from "../../webhooks/store.ts";
import { callContext } from "../connection/call-context.ts";
import type { Database } from "../connection/pool.ts";
import { type WithServer, withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { parseTime } from "../connection/value-types.ts";
import { type SecretsRow, secretColumns, secretsOf } from "./secrets.ts";

/** Attempts of a delivery that are listed. */
const MAX_ATTEMPTS = 20;

/** Creates the store of webhook endpoints in PostgreSQL. Triggers write the events of their changes (migration 0030). */
export function createEndpointStore({
  database,
  lists,
}: Readonly<Record<"database" | "lists", Database>>): EndpointStore & SecretStore {
  const change = async (name: string, principal: Principal, statement: (sql: Sql) => Fragment) => {
    const run = (sql: Sql) =>
      sql<WithServer<WebhookEndpoint>[]>`${withServer<Fragment>(sql, statement(sql), sql``, callContext(principal))}`;
    const [row] = await database.run(run, `webhook_endpoints.${name}`);
    if (row === undefined || row.endpointId === null) return null;
    const { server: _, written: __, ...endpoint } = row as WithServer<WebhookEndpoint> & { written: unknown };
    return endpoint;
  };
  const select = (sql: Sql, condition: Fragment): PendingQuery<WebhookEndpoint[]> => sql`
    SELECT ${columns(sql)} FROM webhook_endpoints WHERE ${condition} AND ${ownSession(sql)} ORDER BY endpoint_id`;
  const deliveries = (name: string, condition: (sql: Sql) => Fragment, limit = 1) =>
    lists.run(async (sql) => (await selectDeliveries(sql, condition(sql), limit)).map(deliveryOf), name);
  const find: EndpointStore["find"] = async (endpointId) => {
    const statement = (sql: Sql) => select(sql, sql`endpoint_id = ${endpointId}`);
    return (await database.run(statement, "webhook_endpoints.find"))[0] ?? null;
  };
  const findDelivery: EndpointStore["findDelivery"] = async (endpointId, deliveryId) => {
    const condition = (sql: Sql) => sql`endpoint_id = ${endpointId} AND delivery_id = ${deliveryId}::uuid`;
    return (await deliveries("webhook_deliveries.find", condition))[0] ?? null;
  };
  return {
    add: (endpoint, principal) =>
      change("add", principal, (sql) => {
        const { endpointId, url, eventTypes, filter, description, createTime, createdBy, secret } = endpoint;
        return sql`
          INSERT INTO webhook_endpoints (endpoint_id, url, event_types, filter, description, create_time, created_by, update_time, wrapped_secret,
            wrap_key_id, next_seq)
          SELECT ${endpointId}::text, ${url}::text, ${[...eventTypes]}::text[], ${filter}::text, ${description}::text, ${createTime}::timestamptz,
            ${createdBy}::text, ${createTime}::timestamptz, ${secret.wrapped}::bytea, ${secret.wrapKeyId}::text, size
          FROM audit_log WHERE (SELECT count(*) FROM webhook_endpoints) < ${MAX_ENDPOINTS}
          ON CONFLICT DO NOTHING RETURNING ${columns(sql)}`;
      }),
    find,
    list: () => lists.run((sql) => select(sql, sql`true`), "webhook_endpoints.list"),
    update: async (endpointId, { url, eventTypes, filter, description, disabled }, time, principal) => {
      const update = (sql: Sql) => {
        // Null: it stays as it is.
        const fields = sql`coalesce(${url ?? null}::text, url),
          coalesce(${eventTypes === undefined ? null : [...eventTypes]}::text[], event_types),
          coalesce(${filter ?? null}::text, filter), coalesce(${description ?? null}::text, description)`;
        const isDisabled = sql`coalesce(${disabled ?? null}::boolean, disable_time IS NOT NULL)`;
        return sql`
          UPDATE webhook_endpoints SET
            (url, event_types, filter, description) = (${fields}),
            disable_time = CASE WHEN ${isDisabled} THEN coalesce(disable_time, ${time}::timestamptz) END,
            disable_reason = CASE WHEN ${isDisabled} THEN coalesce(disable_reason, 'caller') END,
            failing_since = CASE WHEN disable_time IS NULL OR ${isDisabled} THEN failing_since END,
            update_time = ${time}::timestamptz
          WHERE endpoint_id = ${endpointId}
            AND (${fields}, ${isDisabled}) IS DISTINCT FROM (url, event_types, filter, description, disable_time IS NOT NULL)
          RETURNING ${columns(sql)}`;
      };
      return (await change("update", principal, update)) ?? find(endpointId);
    },
    delete: async (endpointId, principal) => {
      const deletion = (sql: Sql) =>
        sql`DELETE FROM webhook_endpoints WHERE endpoint_id = ${endpointId} RETURNING ${columns(sql)}`;
      return (await change("delete", principal, deletion)) !== null;
    },
    rotate: (endpointId, { wrapped, wrapKeyId }, { time, oldExpireTime }, principal) =>
      change(
        "rotate",
        principal,
        (sql) => sql`
          UPDATE webhook_endpoints SET old_wrapped_secret = wrapped_secret, old_wrap_key_id = wrap_key_id,
            old_secret_expire_time = ${oldExpireTime}::timestamptz, wrapped_secret = ${wrapped}::bytea, wrap_key_id = ${wrapKeyId}::text,
            secret_rotate_time = ${time}::timestamptz
          WHERE endpoint_id = ${endpointId} RETURNING ${columns(sql)}`,
      ),
    replay: (endpointId, seq, principal) =>
      change(
        "replay",
        principal,
        (sql) => sql`
          UPDATE webhook_endpoints SET next_seq = least(next_seq, ${seq}::bigint)
          WHERE endpoint_id = ${endpointId} AND disable_time IS NULL RETURNING ${columns(sql)}`,
      ),
    // Locked against a deletion, which would fail the foreign key.
    addDelivery: async ({ deliveryId, endpointId, seq, eventType, body }) => {
      await database.run(
        (sql) => sql`
          INSERT INTO webhook_deliveries (delivery_id, endpoint_id, seq, event_type, body)
          SELECT ${deliveryId}::uuid, endpoint_id, ${seq}::bigint, ${eventType}::text, ${body}::text FROM webhook_endpoints
          WHERE endpoint_id = ${endpointId} AND disable_time IS NULL AND ${ownSession(sql)} FOR KEY SHARE`,
        "webhook_deliveries.add",
      );
      return findDelivery(endpointId, deliveryId);
    },
    deliveries: (endpointId, after, limit) =>
      deliveries(
        "webhook_deliveries.list",
        (sql) => sql`endpoint_id = ${endpointId} AND ${after === null ? sql`true` : sql`delivery_id < ${after}::uuid`}`,
        limit,
      ),
    findDelivery,
    redeliver: async (endpointId, deliveryId) => {
      await database.run(
        (sql) => sql`
          UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_attempt_time = now()
          WHERE delivery_id = ${deliveryId}::uuid AND endpoint_id = ${endpointId} AND coalesce(lease_expire_time < now(), true) AND ${ownSession(sql)}`,
        "webhook_deliveries.redeliver",
      );
    },
    secrets: async () => {
      const rows = await lists.run(
        (sql) => sql<SecretsRow[]>`
          SELECT endpoint_id, ${secretColumns(sql)} FROM webhook_endpoints WHERE ${ownSession(sql)} ORDER BY endpoint_id`,
        "webhook_endpoints.secrets",
      );
      return rows.map(secretsOf);
    },
    rewrap: async ({ endpointId, secret, oldSecret }, before) => {
      await database.run(
        (sql) => sql`
          UPDATE webhook_endpoints SET wrapped_secret = ${secret.wrapped}::bytea, wrap_key_id = ${secret.wrapKeyId}::text,
            old_wrapped_secret = ${oldSecret?.wrapped ?? null}::bytea, old_wrap_key_id = ${oldSecret?.wrapKeyId ?? null}::text
          WHERE endpoint_id = ${endpointId} AND wrapped_secret = ${before.wrapped}::bytea AND ${ownSession(sql)}`,
        "webhook_endpoints.rewrap",
      );
    },
  };
}

function columns(sql: Sql): Fragment {
  return sql`endpoint_id, url, event_types, filter, description, create_time, created_by, update_time, disable_time, disable_reason,
    secret_rotate_time, old_secret_expire_time, next_seq::numeric AS next_seq`;
}

/** Times in JSON are texts. */
type DeliveryRow = Omit<Delivery, "attempts"> & {
  readonly attempts: readonly (Omit<Attempt, "time"> & { readonly time: string })[];
};

function selectDeliveries(sql: Sql, condition: Fragment, limit: number): PendingQuery<DeliveryRow[]> {
  return sql`
    SELECT delivery_id, endpoint_id, seq::numeric AS seq, event_type, state, create_time, next_attempt_time, (
      SELECT coalesce(json_agg(json_build_object('time', time, 'httpStatus', http_status, 'error', error, 'durationMs', duration_ms)
        ORDER BY attempt_id DESC), '[]')
      FROM (
        SELECT * FROM webhook_attempts WHERE webhook_attempts.delivery_id = webhook_deliveries.delivery_id
        ORDER BY attempt_id DESC LIMIT ${MAX_ATTEMPTS}
      ) AS last
    ) AS attempts
    FROM webhook_deliveries WHERE ${condition} AND ${ownSession(sql)} ORDER BY delivery_id DESC LIMIT ${limit}`;
}

function deliveryOf({ attempts, ...delivery }: DeliveryRow): Delivery {
  return { ...delivery, attempts: attempts.map(({ time, ...attempt }) => ({ ...attempt, time: parseTime(time) })) };
}
