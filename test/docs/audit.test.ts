import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { AuditEventSchema } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { parseEventFilter } from "../../src/audit/filter.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { ROOT, readPage } from "./blocks.ts";

const page = readFileSync(resolve(ROOT, "docs/audit.md"), "utf8");

/** Returns the names in the first cells of a table. */
function namesOf(heading: string): string[] {
  const [, table = ""] = page.split(`| ${heading} |`);
  const cells = table.split("\n\n")[0]?.match(/^\| `.*?` \|/gm) ?? [];
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
}

/** Returns the actions of the rows of a table, by the definition of its trigger. */
function rowActions(trigger: string): string[] {
  const [, kind, verb = ""] = /audit_row_changed\('(\w+)', '\w+', '(\w*)'/.exec(trigger) ?? [];
  if (kind === undefined) return [];
  const verbs = { INSERT: "created", UPDATE: verb, DELETE: "deleted" };
  const [, events = ""] = /AFTER (.*?) ON /.exec(trigger) ?? [];
  return Object.entries(verbs).flatMap(([event, name]) => (events.includes(event) ? [`${kind}.${name}`] : []));
}

test("docs/audit.md lists exactly the actions", async () => {
  const database = await createTestDatabase();
  const sql = connect({ url: database.ownerUrl, prepare: false, statementTimeout: 10_000 });
  try {
    const triggers = await sql<{ text: string }[]>`SELECT pg_get_triggerdef(oid) AS text FROM pg_trigger`;
    const functions = await sql<{ text: string }[]>`SELECT prosrc AS text FROM pg_proc WHERE proname LIKE 'audit\\_%'`;
    const actions = [
      ...triggers.flatMap(({ text }) => rowActions(text)),
      ...triggers
        .flatMap(({ text }) => text.match(/(?<=audit_truncated\(')\w+/g) ?? [])
        .map((name) => `${name}.truncated`),
      ...functions.flatMap(({ text }) => text.match(/(?<=')(?:key|call|limit|audit)\.\w+(?=')/g) ?? []),
    ];
    expect(namesOf("Action").sort()).toEqual([...new Set(actions)].sort());
  } finally {
    await sql.end();
    await database.drop();
  }
});

test("docs/audit.md lists exactly the fields of an event", () => {
  expect(namesOf("Field").sort()).toEqual(AuditEventSchema.fields.map(({ name }) => name).sort());
});

test("docs/audit.md shows valid filters", () => {
  const shown = readPage("docs/audit.md").blocks.find(({ info }) => info === "text");
  const filters = shown?.text.trim().split("\n") ?? [];
  expect(filters.length).toBeGreaterThan(2);
  for (const filter of filters) expect(() => parseEventFilter(filter, Date.now)).not.toThrow();
});
