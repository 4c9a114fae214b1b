import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setDefaultCACertificates } from "node:tls";
import { credentials } from "@grpc/grpc-js";
import { withTimeout } from "../../src/lib/with-timeout.ts";
import { startDatabase } from "../faults/database.ts";
import { Target } from "../hostile/target.ts";
import { childrenOf } from "../support/keyhold.ts";
import { WITHOUT_OWN_LIMITS } from "../support/own-limits.ts";
import { probedIn, stateOf } from "../support/process-state.ts";
import { issue, restClient } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { KINDS, type Peer } from "./connections.ts";

/**
 * `npm run test:soak [minutes]`: 20 minutes of connections of every kind, opened and closed, against a node, a node with workers and TLS,
 * and one that is restarted; each is scraped every second, and a worker and connections of the database are killed. What the processes
 * retain, their open files and their backends must return to where they were after a fifth of the time.
 *
 * KEYHOLD_SOAK_SEED  seed of all random choices; printed
 */

const minutes = Number(process.argv[2] ?? 20);
const random = seededBy("KEYHOLD_SOAK_SEED");

/** Callers for each server. */
const CALLERS = 6;

/** Milliseconds after which a call has failed: its server may be gone. */
const CALL_TIME = 30_000;

/** Milliseconds between faults. */
const FAULT_INTERVAL = 10_000;

/** Bytes by which a process may grow: its code is compiled further and its caches fill. A leak of 1 KB a connection is more. */
const ALLOWANCE = 4 * 2 ** 20;

/** Milliseconds for connections to close after the load: those of `fetch` stay for 5 s. */
const SETTLE_TIME = 30_000;

const SETTLE_INTERVAL = 3_000;

/** Timers, and connections that a pool opens when it needs them: after a fault there may be fewer than before. */
const SLACK = 12;

const TLS = resolve(import.meta.dirname, "../support/tls/localhost");

/** By process and resource: the bytes that it retains, and the numbers of what is open. */
type Measurements = Readonly<Record<string, Readonly<Record<string, number>>>>;

// Connect's client rejects a promise that nobody awaits when a server is killed.
process.on("unhandledRejection", () => {});
const dir = await mkdtemp(join(tmpdir(), "keyhold-soak-"));
await chmod(dir, 0o711);
const certificate = await readFile(`${TLS}.cert.pem`);
setDefaultCACertificates([certificate.toString()]);
const database = await startDatabase(dir);
const common = {
  ...probedIn(dir),
  KEYHOLD_DATABASE_URL: database.url(database.port),
  KEYHOLD_ROOT_SECRET: "soak-root-secret-0123456789-abcdefghijklmnopq",
  // Both are full after the warm-up.
  KEYHOLD_CACHE_SIZE: "1",
  KEYHOLD_DATABASE_POOL_SIZE: "2",
  ...WITHOUT_OWN_LIMITS,
  KEYHOLD_GATEWAYS: "forward-auth,ext-authz",
};
const tls = { KEYHOLD_TLS_CERT_FILE: `${TLS}.cert.pem`, KEYHOLD_TLS_KEY_FILE: `${TLS}.key.pem`, KEYHOLD_WORKERS: "2" };
const node = new Target({ name: "node", environment: common, token: undefined });
const workers = new Target({ name: "workers", environment: { ...common, ...tls }, token: undefined });
const restarted = new Target({ name: "restarted", environment: common, token: undefined });
const targets = [node, workers, restarted];
const workerPids = () => childrenOf(workers.pid, "keyhold.js worker");
const counts = new Map(Object.keys(KINDS).map((kind) => [kind, { right: 0, wrong: 0 }]));
const problems: string[] = [];
for (const target of targets) await target.start();
const [kept = 0] = await workerPids();
const processes = { node: node.pid, primary: workers.pid, worker: kept };
const { secret } = await issue(restClient(node));

let before: Measurements | undefined;
let after: Measurements = {};
for (let fifth = 1; fifth <= 5; fifth++) {
  await load((minutes * 60_000) / 5);
  after = await measureAtRest(before);
  before ??= after;
  console.info(`after ${((minutes / 5) * fifth).toFixed(1)} minutes: ${JSON.stringify(after)}`);
}
problems.push(...growth(before ?? {}, after, ALLOWANCE));
for (const [kind, { right, wrong }] of counts) {
  console.info(`${kind}: ${right}, failed ${wrong}`);
  // Those that a killed server cut off.
  if (right === 0 || wrong > right / 4) problems.push(`${kind}: ${wrong} of ${right + wrong} failed`);
}
const uses = [...counts.values()].reduce((sum, { right }) => sum + right, 0);
console.info(`${targets.length} nodes, ${uses} connections or groups of them, ${problems.length} problems`);
for (const target of targets) problems.push(...(await faultsOf(target)).map((fault) => `${target.name}: ${fault}`));
for (const problem of problems) console.error(problem);
await Promise.all(targets.map((target) => target.stop()));
await database.stop();
await rm(dir, { recursive: true, force: true, maxRetries: 10 });
// Node would wait for connections that were reset.
process.exit(problems.length === 0 ? 0 : 1);

/** Runs callers, scrapes and faults for these milliseconds. */
async function load(duration: number): Promise<void> {
  const end = performance.now() + duration;
  const isOver = () => performance.now() > end;
  const callers = targets.flatMap((target) => Array.from({ length: CALLERS }, () => callUntil(isOver, target)));
  // Calls after the last fault open again what it has closed.
  const isCalm = () => performance.now() > end - FAULT_INTERVAL / 2;
  await Promise.all([...callers, scrapeUntil(isOver), harmUntil(isCalm)]);
}

async function callUntil(isOver: () => boolean, target: Target): Promise<void> {
  const own = random.fork();
  const channel = target.tls ? credentials.createSsl(certificate) : credentials.createInsecure();
  const peer: Peer = { target, channel, secret, random: own };
  while (!isOver()) {
    if (!target.isAlive) await sleep(100);
    const [kind, use] = own.pick(Object.entries(KINDS));
    const answer = use(peer).catch(() => false);
    const isRight = await withTimeout(answer, CALL_TIME, () => false);
    const count = counts.get(kind);
    if (count !== undefined && target !== restarted) count[isRight ? "right" : "wrong"]++;
  }
}

async function scrapeUntil(isOver: () => boolean): Promise<void> {
  while (!isOver()) await Promise.all([sleep(1_000), ...targets.map((target) => target.observe())]);
}

/** Restarts a node, replaces a worker and terminates the connections of the database in turn. */
async function harmUntil(isOver: () => boolean): Promise<void> {
  const harms = [
    () => restartBy("SIGTERM"),
    async () =>
      process.kill((await workerPids()).find((pid) => pid !== kept) ?? kept, random.pick(["SIGKILL", "SIGTERM"])),
    () => restartBy("SIGKILL"),
    () => database.admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'keyhold%'`,
  ];
  for (let turn = 0; ; turn++) {
    await sleep(FAULT_INTERVAL);
    if (isOver()) return;
    await harms[turn % harms.length]?.();
  }
}

/** A start fails if the database does not answer in time, as on a busy machine. */
async function restartBy(signal: NodeJS.Signals): Promise<void> {
  await restarted.stop(signal);
  for (let attempt = 1; !restarted.isAlive; attempt++) {
    await restarted.start().catch((error: unknown) => {
      if (attempt === 10) throw error;
    });
  }
}

async function measureAtRest(before: Measurements | undefined): Promise<Measurements> {
  const end = performance.now() + SETTLE_TIME;
  for (let last = await measure(); ; ) {
    await sleep(SETTLE_INTERVAL);
    const now = await measure();
    const isAtRest = growth(before ?? last, now, Number.POSITIVE_INFINITY).length === 0;
    if (isAtRest || performance.now() > end) return now;
    last = now;
  }
}

async function measure(): Promise<Measurements> {
  const states = Object.entries(processes).map(async ([name, pid]) => {
    const { retained, files, resources } = await stateOf(dir, pid);
    const open = Object.entries(Object.groupBy(resources, String)).map(([kind, all = []]) => [kind, all.length]);
    return [name, { retained, files, ...Object.fromEntries(open) }];
  });
  const backends = await database.admin<{ name: string; count: number }[]>`
    SELECT application_name AS name, count(*)::int FROM pg_stat_activity
    WHERE application_name IN ('keyhold', 'keyhold feed') GROUP BY 1`;
  const open = Object.fromEntries(backends.map(({ name, count }) => [name, count]));
  return { ...Object.fromEntries(await Promise.all(states)), database: open };
}

/** Returns what has grown: retained bytes by more than the allowance, anything else by more than a few. */
function growth(before: Measurements, now: Measurements, allowance: number): string[] {
  return Object.entries(now).flatMap(([name, resources]) =>
    Object.entries(resources).flatMap(([resource, value]) => {
      const earlier = before[name]?.[resource] ?? 0;
      const isGrown = value - earlier > (resource === "retained" ? allowance : SLACK);
      return isGrown ? [`${name}: ${resource} was ${earlier} after the warm-up and is ${value}`] : [];
    }),
  );
}

/**
 * Failed calls are logged as errors, which here are the effect of the faults. The bound of resident memory is for one process, and the metric of
 * `workers` is the sum of three.
 */
async function faultsOf(target: Target): Promise<string[]> {
  const expected = target === workers ? /^(logged: |resident memory)/ : /^logged: /;
  return (await target.problems()).filter((problem) => !expected.test(problem));
}
