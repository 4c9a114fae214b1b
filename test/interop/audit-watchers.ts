import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { LIMIT } from "../support/programs/run.ts";
import { type ResponseFilter, TcpProxy } from "../support/tcp-proxy.ts";
import type { Server } from "./servers.ts";
import { keyholdOf } from "./service-checks.ts";
import { whileServing } from "./service-process.ts";
import type { Check } from "./tap.ts";

/** The first connections end after so many bytes: in the headers of the response, and within events. */
const CUTS = [100, 1_500, 4_000, 9_000];

/** Makes the log longer than `CUTS`. */
const KEYS = 20;

/** Milliseconds. The receivers notice a lost connection after 30 s. */
const PATIENCE = 90_000;

/** Runs the receivers of the audit log that these scripts start in this folder, at the same time. */
export async function checkWatchers(
  scripts: readonly string[],
  cwd: string,
  server: Server,
): Promise<readonly Check[]> {
  const checks = scripts.map((script) => checkWatcher(script.trim(), `set -euo pipefail\n${script}`, cwd, server));
  return (await Promise.all(checks)).flat();
}

/** Checks that a receiver prints each event of the log once, beginning with its `seq`, whatever happens to its connections. */
export async function checkWatcher(
  name: string,
  script: string,
  cwd: string,
  { env }: Pick<Server, "env">,
  patience = PATIENCE,
): Promise<readonly Check[]> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-watcher-"));
  const { proxy, cuts, silence } = await startProxy(String(env.KEYHOLD_URL));
  const checks: Check[] = [];
  try {
    const keyhold = keyholdOf(env);
    const { secret, keyId } = await keyhold.issue({ scopes: ["keyhold:audit"], ttl: "1d" });
    const output = join(dir, "output");
    const watcher = {
      script: `exec >>"$OUTPUT"\n${script}`,
      cwd,
      env: {
        ...env,
        KEYHOLD_URL: new URL(proxy.url).origin,
        KEYHOLD_TOKEN: secret,
        RESUME_TOKEN_FILE: join(dir, "resume-token"),
        OUTPUT: output,
      },
    };
    const check = async (what: string, limit = patience) => {
      const { keyId: last } = await keyhold.issue();
      const lines = await linesUntil(last, output, limit);
      const isOnce = lines.length > 0 && lines.every((line, seq) => line.startsWith(`${seq} `));
      checks.push({ name: `${name}: each event once ${what}`, holds: isOnce, comment: lines.join("\n") });
    };
    for (let count = 0; count < KEYS; count++) await keyhold.issue();
    await whileServing(watcher, async () => {
      // It may build first.
      await check("over connections that end", LIMIT);
      checks.push({ name: `${name}: connects again`, holds: cuts() === CUTS.length, comment: `${cuts()} cuts` });
      await proxy.down();
      await keyhold.issue();
      await proxy.up();
      await check("after the server was unreachable");
    });
    await keyhold.issue();
    await whileServing(watcher, async () => {
      await check("after the receiver was killed");
      silence();
      await check("after a connection became silent");
    });
    const rejected = whileServing(watcher, async () => {
      await check("before its token is revoked");
      await keyhold.revoke(keyId);
      await delay(patience, undefined, { ref: false });
    });
    const reason = await rejected.then(() => "it continues", String);
    const isRejected = /exited\n.*unauthenticated/is.test(reason);
    checks.push({ name: `${name}: exits when its token is revoked`, holds: isRejected, comment: reason });
  } catch (error) {
    checks.push({ name: `${name}: runs`, holds: false, comment: String(error) });
  } finally {
    await proxy.close();
    await rm(dir, { recursive: true, force: true });
  }
  return checks;
}

/** Resolves with the printed lines once there is one about this key; with none after this time. Another process writes them. */
async function linesUntil(keyId: string, output: string, limit: number): Promise<readonly string[]> {
  for (const end = performance.now() + limit; performance.now() < end; await delay(100)) {
    const text = await readFile(output, "utf8").catch(() => "");
    if (text.includes(`key.issued ${keyId}\n`)) return text.trimEnd().split("\n");
  }
  return [];
}

/** Starts a proxy that ends its first connections after `CUTS` bytes of responses. `silence` lets nothing more through the open ones. */
async function startProxy(target: string) {
  const counts = { opened: 0, cut: 0, silent: 0 };
  const filter: ResponseFilter = (client) => {
    const index = counts.opened++;
    let left = CUTS[index] ?? Number.POSITIVE_INFINITY;
    return (bytes) => {
      if (left === 0 || index < counts.silent) return Buffer.alloc(0);
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      if (left === 0) {
        counts.cut++;
        setImmediate(() => client.destroySoon());
      }
      return passed;
    };
  };
  const silence = () => {
    counts.silent = counts.opened;
  };
  return { proxy: await TcpProxy.start(target, { filter }), cuts: () => counts.cut, silence };
}
