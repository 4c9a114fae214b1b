import type { Sql } from "postgres";
import { v7 as uuidv7 } from "uuid";
import { startBaseline } from "../baseline/start.ts";
import { cpuPerRequest } from "../harness/cpu.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Pair, Scenario } from "../harness/scenario.ts";
import type { ServerProcess } from "../harness/server.ts";
import { JSON_HEADERS } from "../load/http-load.ts";
import { type LoadRequest, writeRequests } from "../load/requests.ts";
import { checkedRate, percentile, type WrkResult, wrk } from "../load/wrk.ts";
import { PATHS } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { databaseOf, type Installation, install } from "../subject/installation.ts";

/** Number of keys that are changed in turn. */
const KEYS = 1000;
const CLIENTS = 64;

/** Maximum number of revocations a second: a key can be revoked once. */
const MAX_REVOCATIONS = 10_000;

const AGAINST =
  "Fastify route with one UPDATE … RETURNING * of a table without triggers, same columns, indexes, driver, pool size and load";

const rated = { group: "changes", against: AGAINST, unit: "requests/s", judged: "ratio" } as const;
const timed = { group: "changes", against: AGAINST, unit: "ms", judged: "value" } as const;

/** Changes of one key, each a request, compared with an UPDATE that checks and notifies nothing. */
export const changeScenarios: readonly Scenario[] = [
  ...(["update", "rotate", "disable-enable", "revoke"] as const).map(
    (name): Scenario => ({
      ...rated,
      name,
      work: `${name}, ${CLIENTS} clients`,
      prepare: (fixture) => compared(fixture, name, CLIENTS),
    }),
  ),
  {
    ...rated,
    name: "update-one-client",
    work: "update, 1 client",
    prepare: (fixture) => compared(fixture, "update", 1),
  },
  {
    ...rated,
    name: "update-cpu",
    work: `CPU of an update, ${CLIENTS} clients`,
    unit: "µs",
    prepare: async (fixture) => {
      const { subject, baseline } = await compared(fixture, "update", CLIENTS);
      const { server, bare } = await changed(fixture);
      return { subject: cpuPerRequest(fixture, server, subject), baseline: cpuPerRequest(fixture, bare, baseline) };
    },
  },
  {
    ...timed,
    name: "update-p99",
    work: `update, ${CLIENTS} clients: p99`,
    prepare: (fixture) => compared(fixture, "update", CLIENTS, percentile("p99")),
  },
  {
    ...timed,
    name: "update-one-client-p50",
    work: "update, 1 client: p50",
    prepare: (fixture) => compared(fixture, "update", 1, percentile("p50")),
  },
];

/** The service with keys, and the bare route with the same rows. */
const changed = once(async (fixture) => {
  const installation = await install(fixture);
  const sql = databaseOf(fixture, installation);
  const insert = (count: number) => insertKeys(sql, count);
  const keyIds = await insert(KEYS);
  await sql`CREATE TABLE changed_keys (LIKE api_keys INCLUDING ALL)`;
  await sql`INSERT INTO changed_keys SELECT * FROM api_keys`;
  await sql`ANALYZE api_keys, changed_keys`;
  const bare = await startBaseline(fixture, "update", { databaseUrl: installation.databaseUrl });
  return { server: installation.server, bare, keyIds, insert };
});

/** Resolves to the ids of new keys, which expire after `seconds`; null: never. */
export async function insertKeys(sql: Sql, count: number, seconds: number | null = null): Promise<string[]> {
  const keyIds = Array.from({ length: count }, () => uuidv7());
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, digest,
      digest_key_id)
    SELECT key_id, 'issued', ${KEY.name}, ${KEY.actor_id}, ${[...KEY.scopes]}, ${sql.json(KEY.metadata)}, 'kh_v1_…abcd', now(), now(),
      now() + ${seconds} * interval '1 s', sha256(key_id::text::bytea), 'bench'
    FROM unnest(${keyIds}::uuid[]) AS key_id`;
  return keyIds;
}

/** Returns the requests of a load, one for each key after the other. */
type Requests = (keyIds: readonly string[]) => LoadRequest[];

const custom = (verb: string) => (keyId: string) => ({
  method: "POST",
  path: `${PATHS.keys}/${keyId}:${verb}`,
  body: "{}",
});

/** Each update changes the name. */
const updates =
  (path: string): Requests =>
  (keyIds) =>
    ["Production server", "Production worker"].flatMap((name) =>
      keyIds.map((keyId) => ({ method: "PATCH", path: `${path}/${keyId}`, body: JSON.stringify({ name }) })),
    );

const REQUESTS = {
  update: updates(PATHS.issued),
  rotate: (keyIds) => keyIds.map((keyId) => ({ method: "POST", path: `${PATHS.issued}/${keyId}:rotate`, body: "{}" })),
  "disable-enable": (keyIds) => ["disable", "enable"].flatMap((verb) => keyIds.map(custom(verb))),
  revoke: (keyIds) => keyIds.map(custom("revoke")),
} as const satisfies Readonly<Record<string, Requests>>;

type Verb = keyof typeof REQUESTS;

/** Measures the service and the bare route under the same load, by default in requests per second. */
async function compared(
  fixture: Fixture,
  verb: Verb,
  connections: number,
  figureOf: (result: WrkResult) => number = checkedRate,
): Promise<Pair & { readonly baseline: Measure }> {
  const { server, bare, keyIds, insert } = await changed(fixture);
  const measure = async ({ url }: ServerProcess, requests: LoadRequest[]) =>
    figureOf(await load(fixture, url, await writeRequests(fixture, requests), connections));
  const baseline = () => measure(bare, updates("/keys")(keyIds));
  if (verb !== "revoke") return { subject: () => measure(server, REQUESTS[verb](keyIds)), baseline };
  const fresh = () => insert(fixture.seconds * MAX_REVOCATIONS);
  return { subject: async () => measure(server, REQUESTS.revoke(await fresh())), baseline };
}

/** Measures updates of new keys in updates per second. */
export async function updateRate(fixture: Fixture, installation: Installation, connections: number): Promise<Measure> {
  const keyIds = await insertKeys(databaseOf(fixture, installation), KEYS);
  const bodies = await writeRequests(fixture, REQUESTS.update(keyIds));
  return async () => checkedRate(await load(fixture, installation.server.url, bodies, connections));
}

/** Without the check of sizes: a response has more fields once its key was rotated or disabled. */
function load(fixture: Fixture, url: string, bodies: string, connections: number): Promise<WrkResult> {
  return wrk(fixture, { url, headers: JSON_HEADERS, bodies, connections });
}
