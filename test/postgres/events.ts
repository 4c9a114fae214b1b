import type { Sql } from "postgres";
import type { AuditEvent } from "../../src/audit/event.ts";

/** Replaces the audit log by these events. `owner` is the owner of the database. */
export async function storeEvents(owner: Sql, events: readonly AuditEvent[]): Promise<void> {
  const rows = events.map(({ keyId, actorId, resourceId, ...event }) => ({
    ...event,
    ...{ key_id: keyId, actor_id: actorId, resource_id: resourceId, caller: event.call.caller },
  }));
  await owner`DELETE FROM audit_pending`;
  await owner`DELETE FROM audit_events`;
  await owner`INSERT INTO audit_events SELECT * FROM jsonb_populate_recordset(NULL::audit_events, ${owner.json(JSON.parse(JSON.stringify(rows)))})`;
}
