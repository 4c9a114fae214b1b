import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listNodes } from "../../src/postgres/cluster/nodes.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { eventually, type Serving, servingBy } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { issue, type Json, paths, type RestClient, restClient } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { seededBy } from "../support/seeded.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** Nodes whose clocks differ (docs/consistency.md, "Clocks"). */

/** Milliseconds by which the clocks of the two nodes are off. */
const [AHEAD, BEHIND] = [1_600, -1_600];

const NODE = resolve(import.meta.dirname, "../faults/node.ts");

let database: TestDatabase;
let nodes: { readonly server: Serving; readonly rest: RestClient }[];

beforeAll(async () => {
  database = await createTestDatabase();
  nodes = [];
  for (const clock of [AHEAD, BEHIND]) {
    const env = {
      PATH: process.env.PATH,
      ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "0", KEYHOLD_LEASE_TTL: "5s" },
      ...{ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET },
    };
    const child = fork(NODE, [`--clock=${clock}`], { env, execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
    const server = await servingBy(child);
    nodes.push({ server, rest: restClient(server) });
  }
});
afterAll(async () => {
  for (const { server } of nodes) server.kill("SIGKILL");
  await Promise.all(nodes.map(({ server }) => server.ended));
  await database.drop();
});

interface Seen {
  readonly node: number;
  readonly start: number;
  readonly end: number;
  readonly verdict: "valid" | "EXPIRED" | "other";
}

async function look(node: number, credential: string): Promise<Seen> {
  const start = Date.now();
  const answer = await nodes[node]?.rest("POST", `${paths.keys}:verify`, { credential });
  const { is_valid: isValid, error_code: code } = answer?.body ?? {};
  const verdict = isValid ? "valid" : code === "VERIFICATION_ERROR_EXPIRED" ? "EXPIRED" : "other";
  return { node, start, end: Date.now(), verdict };
}

test("a server whose clock is off measures it, logs it, and tells the others", async () => {
  await nodes[0]?.server.logged("this server's clock is ahead of the database clock");
  await nodes[1]?.server.logged("this server's clock is behind the database clock");
  const pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
  try {
    const clocks = async () => (await listNodes(pool)).map(({ clockAhead }) => clockAhead ?? Number.NaN);
    // Upper bounds, which are late by the time of an answer, on a busy machine by more than a second: then that of a later renewal is better.
    for (const [place, clock] of [AHEAD, BEHIND].entries()) {
      await eventually(async () => ((await clocks())[place] ?? Number.NaN) < clock + 1_000);
      // The clocks are read in whole milliseconds.
      expect((await clocks())[place]).toBeGreaterThan(clock - 2);
    }
  } finally {
    await pool.close();
  }
});

test("a server exports the offset of its clock", async () => {
  for (const [place, clock] of [AHEAD, BEHIND].entries()) {
    const { url, logged } = nodes[place]?.server ?? expect.unreachable();
    const { metrics } = await logged(`Keyhold is listening on ${url}`);
    const offset = async () => 1000 * total(await scrape(metrics), "keyhold_clock_offset_seconds");
    // The least of what the measurements allow, which the delay of the answer reduces.
    await eventually(async () => Math.sign(clock) * (await offset()) > 500);
    expect(Math.abs(await offset())).toBeLessThan(Math.abs(clock) + 2);
  }
});

test("a clock that is ahead does not prevent that a key is disabled", async () => {
  const make = () =>
    issue(nodes[1]?.rest as RestClient, {
      actor_id: randomUUID(),
      expire_time: new Date(Date.now() + 1_500).toISOString(),
    });
  for (const node of [0, 1]) {
    const { rest } = nodes[node] as { readonly rest: RestClient };
    // Each is disabled within three seconds of its creation: after that it has expired by every clock.
    const one = await make();
    expect((await look(0, one.secret)).verdict).toBe("EXPIRED");
    expect((await rest("POST", `${paths.issued}/${one.keyId}:enable`, {})).status).toBe(409);
    expect((await rest("POST", `${paths.issued}/${one.keyId}:disable`, {})).status).toBe(200);
    const two = await make();
    expect((await look(0, two.secret)).verdict).toBe("EXPIRED");
    const filter = `actor_id="${two.record.actor_id}"`;
    expect((await rest("POST", `${paths.keys}:bulkDisable`, { filter })).body).toMatchObject({ changed_count: 1 });
    for (const { secret } of [one, two]) expect((await look(1, secret)).verdict).toBe("other");
  }
});

test("a key that has expired by every clock cannot be disabled, and the error says why", async () => {
  const { rest } = nodes[0] as { readonly rest: RestClient };
  const { keyId } = await issue(rest);
  const pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
  try {
    await pool.run(
      (sql) =>
        sql`UPDATE api_keys SET create_time = 'epoch', expire_time = clock_timestamp() - interval '1 h' WHERE key_id = ${keyId}`,
    );
  } finally {
    await pool.close();
  }
  const { body } = await rest("POST", `${paths.issued}/${keyId}:disable`, {});
  expect(body.error.details[0].reason).toBe("API_KEY_EXPIRED");
});

test("a key expires on every node within the difference of the clocks, and then nothing makes it valid again", async () => {
  const random = seededBy("CLOCKS_SEED");
  const expiry = Date.now() + 3_000;
  const end = expiry - BEHIND + 300;
  const keys = await Promise.all(
    Array.from({ length: 8 }, async (_, place) => {
      const time = new Date(expiry).toISOString();
      return { place, ...(await issue(nodes[1]?.rest as RestClient, { expire_time: time, scopes: [`s${place}`] })) };
    }),
  );
  // The first two are only looked at. The third is first changed when a node has rejected it as expired.
  const histories = keys.map(async ({ place, keyId, secret: first }) => {
    const secrets = [first];
    const seen: Seen[] = [];
    const moves: { readonly start: number; readonly end: number; readonly what: string }[] = [];
    const refusals: { readonly start: number; readonly reason: string }[] = [];
    const hasExpired = (node: number) => seen.some((one) => one.node === node && one.verdict === "EXPIRED");
    const isMoved = () => moves.some(({ what }) => what === "forward");
    const watch = async (node: number) => {
      while (Date.now() < end || (place <= 2 && !isMoved() && !hasExpired(node)))
        seen.push(await look(node, secrets.at(-1) ?? first));
    };
    const change = async (own: typeof random) => {
      if (place === 2) await eventually(async () => hasExpired(0));
      while (place > 1 && (Date.now() < end || (place === 2 && !isMoved() && refusals.length === 0))) {
        await sleep(own.below(120));
        const { rest } = own.pick(nodes);
        const path = `${paths.issued}/${keyId}`;
        // Most changes come when the key is about to expire by some clock.
        const changes: Record<string, () => Promise<Json>> = {
          forward: () =>
            rest("PATCH", `${path}?update_mask=expire_time`, { expire_time: new Date(end + 60_000).toISOString() }),
          rename: () => rest("PATCH", path, { name: "n" }),
          disable: () => rest("POST", `${path}:disable`, {}),
          enable: () => rest("POST", `${path}:enable`, {}),
          rotate: () => rest("POST", `${path}:rotate`, { grace_period: "1h" }),
        };
        const isEarly = Date.now() < expiry - AHEAD - 100;
        const what = own.pick(isEarly ? ["rename", "disable", "enable"] : Object.keys(changes));
        const start = Date.now();
        const { status, body } = (await changes[what]?.()) ?? {};
        if (status === 200) moves.push({ start, end: Date.now(), what });
        if (status === 409) refusals.push({ start, reason: body.error.details[0].reason });
        if (status === 200 && what === "rotate") secrets.push(body.secret);
        if (status === 200 && what === "forward") return;
      }
    };
    await Promise.all([watch(0), watch(1), change(random.fork()), change(random.fork())]);
    return {
      place,
      seen,
      moves,
      refusals,
      last: await Promise.all([0, 1].map((node) => look(node, secrets.at(-1) ?? first))),
    };
  });
  for (const { place, seen, moves, refusals, last } of await Promise.all(histories)) {
    const expired = seen.filter(({ verdict }) => verdict === "EXPIRED");
    const first = Math.min(...expired.map((one) => one.end));
    const moved = moves.filter(({ what }) => what === "forward");
    // A change that begins when a node has rejected the key as expired is refused, except a disabling, which goes by the earliest clock.
    expect(moves.filter(({ start, what }) => start > first && what !== "disable")).toEqual([]);
    // Calls in flight while a change is made may use either state.
    const inFlight = (one: Seen) => moved.some((move) => move.start <= one.end && one.start <= move.end);
    for (const node of [0, 1]) {
      const own = expired.filter((one) => one.node === node && !inFlight(one));
      const since = Math.min(...own.map((one) => one.end));
      expect(seen.filter((one) => one.node === node && one.start > since && one.verdict === "valid")).toEqual([]);
    }
    const late = refusals.filter(({ start }) => start > first);
    if (place === 2) expect(late).not.toEqual([]);
    expect(late.filter(({ reason }) => reason !== "API_KEY_EXPIRED")).toEqual([]);
    if (moved.length > 0) continue;
    for (const one of last) expect(one.verdict).not.toBe("valid");
    if (place > 1) continue;
    const firsts = [0, 1].map((node) => Math.min(...expired.filter((one) => one.node === node).map((one) => one.end)));
    const lasts = [0, 1].map((node) =>
      Math.max(...seen.filter((one) => one.node === node && one.verdict === "valid").map((one) => one.start)),
    );
    expect(firsts.every(Number.isFinite)).toBe(true);
    // Each by its own clock, so that the verdicts differ no longer than the clocks do.
    for (const [node, clock] of [AHEAD, BEHIND].entries()) {
      expect(lasts[node]).toBeLessThan(expiry - clock);
      expect(firsts[node]).toBeGreaterThanOrEqual(expiry - clock);
    }
    expect((lasts[1] ?? 0) - (firsts[0] ?? 0)).toBeLessThanOrEqual(AHEAD - BEHIND);
  }
});
