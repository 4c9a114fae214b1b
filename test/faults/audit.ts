import { paths } from "../support/rest.ts";
import type { Json } from "./clients/answer.ts";
import type { Member } from "./clients/member.ts";
import type { History, KeyKind } from "./history.ts";

/** Maximum number of lists of one kind while a list has duplicates. */
const ATTEMPTS = 3;

/**
 * Lists all keys on one node and records each key's state as a read. A record that no client requested, a duplicate and an incomplete
 * record are unexpected. Does nothing if the node does not answer.
 */
export async function audit(history: History, member: Member): Promise<void> {
  for (const kind of ["issued", "imported"] as const) {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const began = performance.now();
      const records = await list(member, kind);
      if (records === null) break;
      // Pages are not a snapshot: a key that is deleted and imported again between two pages may be on both, since ids are ordered by the
      // clocks of different nodes. A true duplicate occurs again.
      if (attempt < ATTEMPTS && new Set(records.map(({ name }) => name)).size < records.length) continue;
      compare(history, member, kind, records, { began, ended: performance.now() });
      break;
    }
  }
}

function compare(
  history: History,
  { name: node }: Member,
  kind: KeyKind,
  records: readonly Json[],
  times: { readonly began: number; readonly ended: number },
): void {
  const byName = new Map<string, Json>();
  for (const record of records) {
    if (byName.has(record.name) || !isWhole(record))
      history.unexpected.push(`a record that differs from its request: ${record.name}`);
    byName.set(record.name, record);
  }
  for (const register of history.registers.filter((one) => one.kind === kind)) {
    const observed = textOf(byName.get(register.name));
    byName.delete(register.name);
    history.record(register, { node, by: "list", ...times, observed });
  }
  for (const name of byName.keys()) history.unexpected.push(`a record without a request: ${name}`);
}

function isWhole({ name, actor_id, metadata, hint }: Json): boolean {
  return actor_id === "faults" && metadata.name === name && typeof hint === "string";
}

function textOf(record: Json): string {
  if (record === undefined) return "absent";
  return `${record.status.replace("KEY_STATUS_", "")} ${record.scopes.join(" ")}`;
}

async function list({ rest }: Member, kind: KeyKind): Promise<Json[] | null> {
  const records: Json[] = [];
  for (let token = "", first = true; first || token !== ""; first = false) {
    const { status, body } = await rest.send(
      "GET",
      `${paths[kind]}?page_size=1000&page_token=${encodeURIComponent(token)}`,
    );
    if (status !== 200) return null;
    records.push(...body[`${kind}_api_keys`]);
    token = body.next_page_token;
  }
  return records;
}
