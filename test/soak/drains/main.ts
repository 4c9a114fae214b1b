import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setDefaultCACertificates } from "node:tls";
import { pino } from "pino";
import { DRAIN_DELAY } from "../../../src/cli/signals.ts";
import { toConfig } from "../../../src/server/config/config.ts";
import { startService } from "../../../src/server/start.ts";
import { startDatabase } from "../../faults/database.ts";
import { WITHOUT_OWN_LIMITS } from "../../support/own-limits.ts";
import { issue, restClient } from "../../support/rest.ts";
import { seededBy } from "../../support/seeded.ts";
import { type Connection, openHttp1, openHttp2, PROTOCOLS, type ProtocolName } from "./calls.ts";

/**
 * `node test/soak/drains/main.ts [connections]`: stops servers with and without TLS, in this process, while calls are in flight over
 * connections of every protocol, until this many connections were drained, 10,000 by default. Counts the responses that were cut, and the
 * calls that were lost.
 *
 * KEYHOLD_DRAINS_SEED  seed of all random choices; printed
 */

const goal = Number(process.argv[2] ?? 10_000);
const random = seededBy("KEYHOLD_DRAINS_SEED");

/** Connections of each kind in a round. */
const EACH = 20;

/** Concurrent calls on a connection of HTTP/2, at most. */
const MAX_STREAMS = 3;

const TLS = resolve(import.meta.dirname, "../../support/tls/localhost");

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const KINDS = NAMES.flatMap((name) => [
  ...(name === "gRPC" ? [] : [{ kind: `${name}, HTTP/1.1`, name, open: openHttp1, streams: 1 }]),
  { kind: `${name}, HTTP/2`, name, open: openHttp2, streams: MAX_STREAMS },
]);

const dir = await mkdtemp(join(tmpdir(), "keyhold-drains-"));
await chmod(dir, 0o711);
setDefaultCACertificates([await readFile(`${TLS}.cert.pem`, "utf8")]);
const database = await startDatabase(dir);
const common = {
  ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off" },
  ...WITHOUT_OWN_LIMITS,
  KEYHOLD_DATABASE_URL: database.url(database.port),
  KEYHOLD_ROOT_SECRET: "drains-root-secret-0123456789-abcdefghijklmnop",
};
const SERVERS = {
  plain: common,
  TLS: { ...common, KEYHOLD_TLS_CERT_FILE: `${TLS}.cert.pem`, KEYHOLD_TLS_KEY_FILE: `${TLS}.key.pem` },
};
const logger = pino({ level: "silent" });
const start = (name: keyof typeof SERVERS) =>
  startService(toConfig(SERVERS[name]), logger, { drainDelay: DRAIN_DELAY });
const counts = new Map<string, Record<string, number>>();
const problems: string[] = [];

const first = await start("plain");
let secret = "";
// Keys for pages of 200. On a busy machine a server may lose its lease for a moment.
for (let count = 0; count < 200; ) {
  const issued = await issue(restClient(first)).catch(() => undefined);
  if (issued !== undefined) [secret, count] = [issued.secret, count + 1];
}
await first.close();

let drained = 0;
for (let round = 1; drained < goal; round++) {
  await Promise.all([drain("plain"), drain("TLS")]);
  if (round % 5 === 0) console.info(`${drained} connections drained, ${problems.length} problems`);
}
console.table(Object.fromEntries(counts));
for (const problem of problems) console.error(problem);
console.info(`${drained} connections drained, ${problems.length} responses cut or lost`);
await database.stop();
await rm(dir, { recursive: true, force: true, maxRetries: 10 });
process.exit(problems.length === 0 ? 0 : 1);

/** Stops a server under load, and waits until it and its connections have ended. */
async function drain(server: keyof typeof SERVERS): Promise<void> {
  const service = await start(server);
  const url = service.url.replace("127.0.0.1", "localhost");
  const connections = KINDS.flatMap(({ kind, name, open, streams }) =>
    Array.from({ length: EACH }, () => ({ kind, streams, connection: open(url, name, secret) })),
  );
  await Promise.all(connections.map(({ connection }) => connection.call(false)));
  const users = connections.map(async ({ kind, streams, connection }) => {
    const callers = Array.from({ length: 1 + random.below(streams) }, () =>
      callUntilEnd(`${server}, ${kind}`, connection),
    );
    await Promise.all(callers);
    connection.close();
  });
  await sleep(random.below(100));
  await Promise.all([service.close(), ...users]);
  drained += users.length;
}

async function callUntilEnd(kind: string, connection: Connection): Promise<void> {
  const own = random.fork();
  const count = counts.get(kind) ?? { complete: 0, refused: 0, cut: 0, lost: 0 };
  counts.set(kind, count);
  for (let goesOn = true; goesOn; ) {
    const answer = await connection.call(own.below(8) === 0);
    goesOn = answer.goesOn;
    count[answer.fate] = (count[answer.fate] ?? 0) + 1;
    if (answer.fate === "cut" || answer.fate === "lost") problems.push(`${kind}: ${answer.fate}: ${answer.why}`);
  }
}
