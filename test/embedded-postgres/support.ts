import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import postgres, { type Sql } from "postgres";
import { inject, onTestFinished } from "vitest";
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/embedded.ts";
import { describeProcess } from "../../src/embedded-postgres/process.ts";
import { socketOptions } from "../support/socket-options.ts";

export const isRoot = process.geteuid?.() === 0;
export const nobody = { uid: 65534, gid: 65534 };

/** Returns a folder that is removed after the test. */
export async function makeDir(): Promise<string> {
  const dir = await mkdtemp(join(inject("testDir"), "embedded-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}

/**
 * Returns a data directory that was used before, with row 1 and possibly more in its table `kept`. Since copying is slow, tests share
 * folders; a test that moves one away moves it back.
 */
export async function usedDataDir(): Promise<string> {
  const pool = join(inject("testDir"), "embedded-pool");
  await mkdir(pool, { recursive: true });
  const dir = join(inject("testDir"), `embedded-${randomUUID()}`);
  if (!(await takeFrom(pool, dir))) await makeUsed(dir);
  onTestFinished(({ task }) => {
    if (task.result?.state !== "fail") return rename(dir, join(pool, randomUUID()));
  });
  return dir;
}

async function takeFrom(pool: string, dir: string): Promise<boolean> {
  for (const name of await readdir(pool)) {
    if (await succeeds(rename(join(pool, name), dir))) return true;
  }
  return false;
}

async function makeUsed(dataDir: string): Promise<void> {
  const server = await startEmbeddedPostgres({ dataDir, log: () => {} });
  const sql = clientOf(server.url);
  await sql`CREATE TABLE kept (id serial PRIMARY KEY)`;
  await sql`INSERT INTO kept DEFAULT VALUES`;
  await sql.end();
  await server.stop();
}

/** Moves a data directory until the test ends. */
export async function move(dataDir: string, to: string): Promise<string> {
  await mkdir(dirname(to), { recursive: true });
  await rename(dataDir, to);
  onTestFinished(() => rename(to, dataDir));
  return to;
}

export function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

/** Starts a server in this process; it stops with the test. */
export async function start(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log: () => {}, ...options });
  onTestFinished(() => server.stop());
  return server;
}

/** Reconnects at once: by default the client waits up to 20 s after a few failures. */
export function clientOf(url: string): Sql {
  return postgres(url, { ...socketOptions(url), max: 1, onnotice: () => {}, backoff: () => 0.02 });
}

/** Writes a row, which must survive any crash of a process once this resolves. */
export async function keep(sql: Sql): Promise<number> {
  const [row] = await sql`INSERT INTO kept DEFAULT VALUES RETURNING id`;
  return row?.id;
}

export async function keptIn(url: string): Promise<number[]> {
  const sql = clientOf(url);
  const rows = await sql`SELECT id FROM kept ORDER BY id`;
  await sql.end();
  return rows.map((row) => row.id);
}

export interface Owner {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Resolves to the next line of its output. */
  nextOutput(): Promise<{ url?: string; pid?: number; error?: string; last?: string }>;
  ended: Promise<unknown>;
}

export interface OwnerOptions {
  readonly uid?: number;
  readonly gid?: number;
  readonly detached?: boolean;
  /** The command that runs it. */
  readonly prefix?: readonly string[];
}

/** Starts `owner.ts` in a separate process, which stops its server and exits with the test. */
export function startOwner(dataDir: string, { prefix = [], ...options }: OwnerOptions = {}): Owner {
  const [file = "", ...args] = [...prefix, process.execPath, join(import.meta.dirname, "owner.ts"), dataDir];
  const child = spawn(file, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    child.stdin.end();
    await ended;
  });
  return {
    process: child,
    pid: child.pid ?? 0,
    nextOutput: async () => JSON.parse((await lines.next()).value ?? '{"error": "no output"}'),
    ended,
  };
}

export async function isRunning(pid: number): Promise<boolean> {
  return (await describeProcess(pid)) !== undefined;
}
