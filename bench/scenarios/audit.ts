import { setTimeout } from "node:timers/promises";
import type { Sql } from "postgres";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { databaseOf, type Installation, install } from "../subject/installation.ts";
import { revokeAll, verifyTime } from "./bulk.ts";
import { insertKeys, updateRate } from "./changes.ts";
import { importRate } from "./import.ts";

const AGAINST = "the same server with its database's triggers of the audit log disabled";
const CLIENTS = 64;

/** Keys of a round of bulkRevoke. */
const REVOKED = 20_000;

interface Subject extends Installation {
  readonly sql: Sql;
}

/** Keys that expire for each second of a round: more than the job of a server records. */
const EXPIRING = 1_000;

/** Two services with a database each, of which only one records events. */
const both = once(async (fixture: Fixture) => {
  const [recording, silent] = [await open(fixture), await open(fixture)];
  const triggers = await silent.sql<{ name: string }[]>`
    SELECT tgname AS name FROM pg_trigger WHERE tgrelid = 'api_keys'::regclass AND tgname LIKE '%\\_audited'`;
  for (const { name } of triggers) await silent.sql`ALTER TABLE api_keys DISABLE TRIGGER ${silent.sql(name)}`;
  return { recording, silent };
});

async function open(fixture: Fixture): Promise<Subject> {
  const installation = await install(fixture);
  return { ...installation, sql: databaseOf(fixture, installation) };
}

const compared = (measureOf: (fixture: Fixture, subject: Subject) => Promise<Measure>) => async (fixture: Fixture) => {
  const { recording, silent } = await both(fixture);
  return { subject: await measureOf(fixture, recording), baseline: await measureOf(fixture, silent) };
};

/** Revokes new keys, whose creation is in the log and its tree already. */
async function bulkRevokeRate(_fixture: Fixture, { sql, server }: Subject): Promise<Measure> {
  return async () => {
    await insertKeys(sql, REVOKED);
    await integrated(sql);
    return revokeAll(server.url);
  };
}

/** Resolves when the tree has every event, of which `expired` are expiries. */
async function integrated(sql: Sql, expired = 0): Promise<void> {
  for (;;) {
    const [state] = await sql<{ isDone: boolean }[]>`
      SELECT (SELECT count(*) FROM audit_events WHERE action = 'key.expired') = ${expired} AND audit_tree.size = audit_log.size
        AND NOT EXISTS (SELECT FROM audit_pending) AS "isDone"
      FROM audit_tree, audit_log`;
    if (state?.isDone === true) return;
    await setTimeout(200);
  }
}

const shared = { group: "audit", against: AGAINST, judged: "ratio" } as const;

/** What the events of the audit log cost. */
export const auditScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "audit-create",
    work: `create, ${CLIENTS} clients`,
    unit: "requests/s",
    prepare: compared(async (fixture, { server }) => {
      const bodies = await jsonBodies(fixture, [KEY]);
      return httpLoad(fixture, {
        headers: JSON_HEADERS,
        bodies,
        connections: CLIENTS,
        url: server.url + PATHS.issued,
      });
    }),
  },
  {
    ...shared,
    name: "audit-update",
    work: `update, ${CLIENTS} clients`,
    unit: "requests/s",
    prepare: compared((fixture, subject) => updateRate(fixture, subject, CLIENTS)),
  },
  {
    ...shared,
    name: "audit-import",
    work: "batch import of 1000",
    unit: "keys/s",
    prepare: compared(
      async (_fixture, { server }) =>
        () =>
          importRate(server.url),
    ),
  },
  {
    ...shared,
    name: "audit-bulk-revoke",
    work: `bulkRevoke of ${REVOKED.toLocaleString("en-GB")} keys`,
    unit: "keys/s",
    prepare: compared(bulkRevokeRate),
  },
  {
    group: "audit",
    name: "expiry-verify-p99",
    work: "p99 of verify while the expiry of many keys is recorded",
    against: "the same without",
    unit: "ms",
    judged: "ratio",
    needs: ["wrk"],
    prepare: async (fixture) => {
      const { sql, server } = await open(fixture);
      const verify = await verifyTime(fixture, server.url);
      let count = 0;
      return {
        subject: async () => {
          const added = EXPIRING * fixture.seconds;
          await insertKeys(sql, added, 0);
          count += added;
          const p99 = await verify();
          await integrated(sql, count);
          return p99;
        },
        baseline: verify,
      };
    },
  },
];
