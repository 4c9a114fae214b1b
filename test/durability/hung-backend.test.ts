import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { clientOf } from "../embedded-postgres/support.ts";
import { newDataDir, type Serving, serve } from "../support/keyhold.ts";
import { type Answer, issue, paths, type RestClient, restClient } from "../support/rest.ts";

const dataDir = newDataDir();
let server: Serving;
let rest: RestClient;
let sql: ReturnType<typeof clientOf>;

beforeAll(async () => {
  server = await serve({ KEYHOLD_DATA_DIR: dataDir.path });
  rest = restClient(server);
  // Only a superuser sees the statements of another role.
  const { superuserUrl } = await startEmbeddedPostgres({ dataDir: dataDir.path, log: () => {}, ifRunning: "attach" });
  sql = clientOf(superuserUrl);
});
afterAll(async () => {
  await sql.end({ timeout: 0 });
  server.kill("SIGTERM");
  await server.ended;
  await dataDir.remove();
});

/** Returns the idle backends of the service whose last statement matches. */
async function backends(statement: string): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    SELECT pid FROM pg_stat_activity
    WHERE application_name = 'keyhold' AND state = 'idle' AND query ~ ${statement}`;
  return rows.map(({ pid }) => pid);
}

/** The service waits for the statement deadline and one second for its response; a busy machine may add some. */
const DEADLINE = { least: 9_000, most: 25_000 };

async function timed(call: Promise<Answer>): Promise<{ answer: Answer; took: number }> {
  const began = performance.now();
  return { answer: await call, took: performance.now() - began };
}

const FRESH = { "cache-control": "no-cache" };

test("calls on hung backends answer 503 within the statement deadline, and the next calls use other connections", async () => {
  const [{ keyId, secret }, other] = [await issue(rest), await issue(rest)];
  const verify = () => rest("POST", `${paths.keys}:verify`, { credential: secret }, FRESH);
  await verify();
  await rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" });
  // A change ends with its barrier.
  const hung = [...(await backends("LEFT JOIN nodes ON lease_id")), ...(await backends("key_id = ANY"))];
  expect(hung).toHaveLength(2);
  for (const pid of hung) process.kill(pid, "SIGSTOP");
  try {
    const calls = Promise.all([
      timed(rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed again" })),
      timed(verify()),
    ]);
    for (const path of ["/health/alive", "/health/ready"]) {
      const { answer, took } = await timed(rest("GET", path));
      expect(answer.status).toBe(200);
      expect(took).toBeLessThan(1_000);
    }
    for (const { answer, took } of await calls) {
      expect(answer).toMatchObject({
        status: 503,
        body: { error: { details: [{ reason: "DATABASE_UNAVAILABLE" }, {}] } },
      });
      expect(answer.headers.get("retry-after")).toBe("1");
      expect(took).toBeGreaterThan(DEADLINE.least);
      expect(took).toBeLessThan(DEADLINE.most);
    }
    const next = performance.now();
    expect(await verify()).toMatchObject({ status: 200, body: { is_valid: true } });
    expect(await rest("POST", `${paths.keys}/${other.keyId}:revoke`, {})).toMatchObject({ status: 200 });
    expect(performance.now() - next).toBeLessThan(2_000);
  } finally {
    for (const pid of hung) process.kill(pid, "SIGCONT");
  }
});
