import { isDeepStrictEqual } from "node:util";
import type { ISql, Sql } from "postgres";
import type { CallRecord, RecordedRow } from "../../src/audit/event.ts";

/** An event, as stored. */
export interface StoredEvent {
  /** Null: the event is pending. */
  readonly seq: number | null;
  readonly action: string;
  readonly keyId: string | null;
  readonly resourceId: string | null;
  readonly call: CallRecord;
  readonly before: RecordedRow | null;
  readonly after: RecordedRow | null;
}

/** The state of an audit log, and how it differs from the tables that it describes. */
export interface Replay {
  /** In the order of the log; pending ones last. */
  readonly events: readonly StoredEvent[];
  readonly violations: readonly string[];
}

/** A table with events: its name, the column that identifies a row, and the columns that events omit (migration 0026). */
type AuditedTable = readonly [table: string, id: string, omitted?: readonly string[]];

/** By the first part of actions. */
const TABLES: Readonly<Record<string, AuditedTable>> = {
  key: [
    "api_keys",
    "key_id",
    [
      ...["digest", "previous_secrets", "other_digests", "hash_parameters"],
      ...["request_id", "request_fingerprint", "last_used_time", "secret_uses", "last_used_address"],
    ],
  ],
  signing_key: ["signing_keys", "kid", ["wrapped", "tokens_expire_time"]],
  hmac_key: ["hmac_keys", "hmac_key_id", ["wrapped_key", "slot"]],
  root_secret: ["used_root_secrets", "digest_key_id"],
  accepted_database: ["accepted_databases", "system_identifier"],
  webhook_endpoint: [
    "webhook_endpoints",
    "endpoint_id",
    ["wrapped_secret", "old_wrapped_secret", "next_seq", "failing_since"],
  ],
  actor: ["actors", "actor_id"],
  migration: ["schema_migrations", "name"],
  audit_tree_key: ["audit_tree_key", "verifier_key", ["wrapped"]],
};

/** The first migration with events: its own insertion. */
const FIRST_MIGRATION = 26;

/** Events that change no row. */
const WITHOUT_CHANGE = new Set([
  ...["webhook_endpoint.replayed", "call.denied", "key.expiring", "key.expired", "limit.exceeded"],
  "audit.checkpoint",
]);

/** Rows by `<kind> <id>`, such as `key 0198b2a4-…`. */
type Rows = Map<string, RecordedRow>;

/**
 * Adds committed events to the log, replays the log and compares the result with the tables, in one snapshot, also while they are being
 * changed: pending events follow the others in their order. The replay begins with empty tables, or with rows that are older than the log.
 */
export async function replayAuditLog(sql: Sql, begin: "empty" | "with rows" = "empty"): Promise<Replay> {
  const waiting = await sql`SELECT id FROM audit_pending`;
  for (let assigned = 1; assigned > 0; ) {
    const [run] = await sql`SELECT assigned FROM audit_sequence(1000)`;
    assigned = run?.assigned;
  }
  return sql.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", async (snapshot) => {
    const pending = new Set((await snapshot`SELECT id FROM audit_pending`).map(({ id }) => id));
    const skipped = waiting.filter(({ id }) => pending.has(id));
    const [log] = await snapshot`SELECT size::float8 AS size FROM audit_log`;
    const events = await snapshot<StoredEvent[]>`
      SELECT seq::float8 AS seq, action, key_id AS "keyId", resource_id AS "resourceId", call, before, after FROM (
        SELECT seq, NULL::bigint AS id, action, key_id, resource_id, call, before, after FROM audit_events
        UNION ALL SELECT NULL, id, action, key_id, resource_id, call, before, after FROM audit_pending) AS event
      ORDER BY event.seq, event.id`;
    const stored = await readTables(snapshot);
    const changes = events.filter(({ action }) => !WITHOUT_CHANGE.has(action));
    const { rows, violations } = replay(changes, begin === "empty" ? new Map() : undo(changes, stored));
    return {
      events,
      violations: [
        ...(skipped.length === 0 ? [] : [`${skipped.length} committed events were left out of the log`]),
        ...gaps(events, log?.size),
        ...violations,
        ...differences(rows, stored),
      ],
    };
  });
}

function gaps(events: readonly StoredEvent[], size: number): string[] {
  const numbered = events.filter(({ seq }) => seq !== null);
  const gap = numbered.findIndex(({ seq }, place) => seq !== place);
  if (gap !== -1) return [`seq ${numbered[gap]?.seq} at place ${gap} of the log`];
  return size === numbered.length ? [] : [`the log of size ${size} has ${numbered.length} events`];
}

/** Returns the rows that the tables had before these events. */
function undo(events: readonly StoredEvent[], stored: Rows): Rows {
  const rows: Rows = new Map(stored);
  for (const event of events.toReversed()) {
    const { before } = event;
    if (before === null) rows.delete(nameOf(event));
    else rows.set(nameOf(event), withoutNulls({ ...rows.get(nameOf(event)), ...before }));
  }
  return rows;
}

function replay(events: readonly StoredEvent[], rows: Rows): { rows: Rows; violations: string[] } {
  const violations: string[] = [];
  for (const event of events) {
    const { seq, action, before, after } = event;
    if (action.endsWith("s.truncated")) {
      const kind = action.replace("s.truncated", " ");
      for (const name of rows.keys()) if (name.startsWith(kind)) rows.delete(name);
      continue;
    }
    const name = nameOf(event);
    const current = rows.get(name);
    const expected = before === null ? undefined : after === null ? before : { ...current, ...before };
    if (!isDeepStrictEqual(current, expected && withoutNulls(expected)))
      violations.push(`event ${seq}: ${action} of ${name}: ${describe(current)} before, not ${describe(before)}`);
    if (after === null) rows.delete(name);
    else rows.set(name, withoutNulls({ ...current, ...after }));
  }
  return { rows, violations };
}

async function readTables(sql: ISql): Promise<Rows> {
  const rows: Rows = new Map();
  for (const [kind, [table, id, omitted = []]] of Object.entries(TABLES)) {
    const found = await sql`
      SELECT ${sql(id)}::text AS id,
        to_jsonb(${sql(table)}) - string_to_array(${omitted.join()}, ',') || jsonb_build_object(${id}::text, ${sql(id)}::text) AS columns
      FROM ${sql(table)}`;
    for (const { id, columns } of found)
      if (kind !== "migration" || columns.version >= FIRST_MIGRATION)
        rows.set(nameOfRow(kind, id, columns), withoutNulls(columns));
  }
  return rows;
}

function nameOf({ action, keyId, resourceId, before, after }: StoredEvent): string {
  return nameOfRow(action.split(".")[0], keyId ?? resourceId, after ?? before);
}

/** A database may be accepted several times: such a row is identified by its time too. */
function nameOfRow(kind: string | undefined, id: string | null, columns: RecordedRow | null): string {
  return [kind, id, ...(kind === "accepted_database" ? [columns?.accept_time] : [])].join(" ");
}

function differences(replayed: Rows, stored: Rows): string[] {
  const names = [...new Set([...replayed.keys(), ...stored.keys()])];
  return names
    .filter((name) => !isDeepStrictEqual(replayed.get(name), stored.get(name)))
    .map((name) => `${name} is ${describe(stored.get(name))}, by its events ${describe(replayed.get(name))}`);
}

/** A column that is null counts as absent. */
function withoutNulls(row: RecordedRow): RecordedRow {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

function describe(row: RecordedRow | null | undefined): string {
  return row === null || row === undefined ? "absent" : JSON.stringify(row);
}
