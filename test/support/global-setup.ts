import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { freePort } from "./free-port.ts";
import { createTemplate, dropTemplate } from "./template-database.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A Unix socket that returns a superuser's URL and the template database: the server starts when the first suite requests it. */
    readonly testPostgres: string;
    /** A folder for the files of tests, which other users may traverse. It is removed after the run, even if that is interrupted. */
    readonly testDir: string;
  }
}

/** Durability is not needed: no test survives a crash of the machine. */
const fast = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "200",
  deadlock_timeout: "100ms",
};

const hostRules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/** Creates one folder for the whole run, and one server if a suite requests it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-test-"));
  await chmod(dir, 0o711);
  const reaper = removeAfterExit(dir);
  project.provide("testDir", dir);
  const stop = await offerServer(project, dir);
  return async () => {
    await stop();
    await rm(dir, { recursive: true, force: true });
    reaper.kill("SIGKILL");
  };
}

async function offerServer(project: TestProject, dir: string): Promise<() => Promise<void>> {
  const socket = join(dir, "ask.sock");
  project.provide("testPostgres", socket);
  let starting: Promise<TestServer> | undefined;
  const server = createServer((connection) => {
    starting ??= prepareServer(dir);
    starting.then(
      ({ url, template }) => connection.end(JSON.stringify({ url, template })),
      (error) => connection.end(JSON.stringify({ error: String(error) })),
    );
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return async () => {
    server.close();
    await starting?.then(({ stop }) => stop()).catch(() => undefined);
  };
}

interface TestServer {
  readonly url: string;
  readonly template: string;
  stop(): Promise<void>;
}

async function prepareServer(dir: string): Promise<TestServer> {
  const external = process.env.KEYHOLD_TEST_DATABASE_URL;
  const { url, stop } = external ? { url: external, stop: async () => {} } : await startServer(dir);
  const template = await createTemplate(url);
  return {
    url,
    template,
    stop: async () => {
      if (external) await dropTemplate(url, template);
      await stop();
    },
  };
}

/** Sets a password, since suites connect over TCP, so that a plain URL is enough for every client. */
async function startServer(dir: string): Promise<Omit<TestServer, "template">> {
  const hbaFile = join(dir, "pg_hba.conf");
  await writeFile(hbaFile, hostRules);
  const port = String(await freePort());
  const settings = { ...fast, listen_addresses: "127.0.0.1", port, hba_file: hbaFile };
  const embedded = await startEmbeddedPostgres({ dataDir: join(dir, "data"), log: logWarnings, settings });
  const password = randomBytes(16).toString("hex");
  await setSuperuserPassword(embedded, port, password);
  return { url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`, stop: () => embedded.stop() };
}

function logWarnings(level: string, message: string): void {
  if (level === "error") console.error(`embedded PostgreSQL: ${message}`);
}

async function setSuperuserPassword({ url }: EmbeddedPostgres, port: string, password: string): Promise<void> {
  const socketDir = decodeURIComponent(new URL(url).hostname);
  const sql = postgres({ path: join(socketDir, `.s.PGSQL.${port}`), user: "postgres", database: "postgres", max: 1 });
  await sql.unsafe(`ALTER ROLE postgres PASSWORD '${password}'`);
  await sql.end();
}

/**
 * Removes the folder after an interrupted run, which has no teardown: waits until the pipe from this process breaks and all servers have
 * stopped.
 */
function removeAfterExit(dir: string): ReturnType<typeof spawn> {
  const script = `read -r _; n=0
while [ -n "$(find "$1" -name postmaster.pid)" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done
rm -rf "$1"; sleep 1; rm -rf "$1"`;
  const child = spawn("sh", ["-c", script, "reaper", dir], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  child.stdin.on("error", () => {});
  child.unref();
  return child;
}
