import { readFile } from "node:fs/promises";
import { join } from "node:path";
import postgres from "postgres";
import { socketOptions } from "../../test/support/socket-options.ts";
import type { KnownKey } from "../baseline/go/start.ts";
import { startBaseline } from "../baseline/start.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { startBetterAuth, startValkey, VALKEY } from "../peers/start.ts";
import { PATHS } from "../subject/client.ts";
import { issueKeys, verifyAll } from "../subject/fill.ts";
import { type Installation, install } from "../subject/installation.ts";

/** Active keys, which the load cycles through. */
const SIZES = [1_000, 64_000] as const;

/** The service with its active keys. */
interface Subject {
  readonly installation: Installation;
  readonly keys: readonly KnownKey[];
}

/** Another way to verify API keys. */
interface Peer {
  readonly name: string;
  readonly against: string;
  readonly needs?: readonly string[];
  /** Resolves to its URL and the bodies of the requests for as many keys as the subject has. */
  start(fixture: Fixture, subject: Subject): Promise<{ readonly url: string; readonly requests: readonly unknown[] }>;
}

const PEERS: readonly Peer[] = [
  {
    name: "select",
    against: "Fastify route with one prepared SELECT, same driver and pool size",
    start: async (fixture, { installation: { databaseUrl }, keys }) => {
      const { url } = await startBaseline(fixture, "select", { databaseUrl });
      return { url, requests: keys.map(({ verdict }) => ({ key_id: verdict.key_id })) };
    },
  },
  {
    name: "valkey",
    against: "Fastify route with one GET of a record in Valkey, by iovalkey",
    needs: [VALKEY],
    start: async (fixture, { keys }) => {
      const { url } = await startValkey(fixture, keys);
      return { url, requests: keys.map(({ credential }) => ({ credential })) };
    },
  },
  {
    name: "better-auth-sqlite",
    against: "Fastify route with verifyApiKey of better-auth on SQLite, without rate limits",
    start: (fixture, { keys }) => betterAuth(fixture, join(fixture.dir, `sqlite-${keys.length}`), keys.length),
  },
  {
    name: "better-auth-postgres",
    against: "Fastify route with verifyApiKey of better-auth on PostgreSQL, without rate limits",
    start: async (fixture, { installation, keys }) =>
      betterAuth(fixture, await createDatabase(installation), keys.length),
  },
];

/** Returns the URL of a new database. */
async function createDatabase({ superuserUrl }: Installation): Promise<string> {
  const sql = postgres(superuserUrl, { ...socketOptions(superuserUrl), max: 1 });
  await sql`CREATE DATABASE better_auth`;
  await sql.end();
  return Object.assign(new URL(superuserUrl), { pathname: "/better_auth" }).href;
}

async function betterAuth(fixture: Fixture, database: string, count: number) {
  const file = join(fixture.dir, `credentials-${count}`);
  const { url } = await startBetterAuth(fixture, database, count, file);
  const credentials = (await readFile(file, "utf8")).split("\n");
  return { url, requests: credentials.map((credential) => ({ credential })) };
}

/** The peers of verification: what is used instead of the service. */
export const peerScenarios: readonly Scenario[] = SIZES.flatMap((size) => {
  const subjectOf = once(async (fixture): Promise<Subject> => {
    const installation = await install(fixture);
    const { url } = installation.server;
    const secrets = await issueKeys(url, size);
    const verdicts = await verifyAll(url, secrets);
    return { installation, keys: secrets.map((credential, index) => ({ credential, verdict: verdicts[index] })) };
  });
  return PEERS.map(
    ({ name, start, ...peer }): Scenario => ({
      ...peer,
      name: `peer-${name}-${size / 1_000}k`,
      group: "peers",
      work: `verify, cached, REST HTTP/1.1, ${size.toLocaleString("en")} active keys`,
      unit: "requests/s",
      judged: "ratio",
      long: 90,
      prepare: async (fixture) => {
        const subject = await subjectOf(fixture);
        const { url, requests } = await start(fixture, subject);
        const load = { headers: JSON_HEADERS, connections: CONNECTIONS };
        const bodies = await jsonBodies(
          fixture,
          subject.keys.map(({ credential }) => ({ credential })),
        );
        return {
          subject: httpLoad(fixture, { ...load, bodies, url: subject.installation.server.url + PATHS.verify }),
          baseline: httpLoad(fixture, { ...load, bodies: await jsonBodies(fixture, requests), url: `${url}/verify` }),
        };
      },
    }),
  );
});
