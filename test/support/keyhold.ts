import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { inject, onTestFinished } from "vitest";
import { worksIn } from "../../src/embedded-postgres/lock.ts";
import { readPidFile } from "../../src/embedded-postgres/pid-file.ts";
import { describeProcess, type ProcessInfo } from "../../src/embedded-postgres/process.ts";
import { WITHOUT_OWN_LIMITS } from "./own-limits.ts";
import type { Json } from "./rest.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/keyhold.js");

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `keyhold serve` in a separate process. */
export interface Serving {
  readonly pid: number;
  readonly url: string;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves to the first log line, past or future, with this message. */
  logged(message: string): Promise<Json>;
}

/** Options of a run of the command. */
export interface RunOptions {
  /** Text on stdin, which ends when it is known and written. */
  readonly input?: string | Promise<string> | undefined;
  /** Launcher; default: that of this checkout. */
  readonly main?: string;
}

/** Runs the command and resolves when it has exited. */
export function runKeyhold(
  args: readonly string[],
  environment: Record<string, string>,
  options: RunOptions = {},
): Promise<Ended> {
  return startKeyhold(args, environment, options).ended;
}

/** A running command. */
export interface Running {
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

export function startKeyhold(
  args: readonly string[],
  environment: Record<string, string>,
  options: RunOptions = {},
): Running {
  const child = start(args, environment, options);
  return { ended: endOf(child), kill: (signal) => child.kill(signal) };
}

/** Starts the server on a free port and resolves when it listens. Rejects with its output if it exits before. */
export function serve(environment: Record<string, string>, main = MAIN): Promise<Serving> {
  return servingBy(
    start(
      ["serve"],
      { KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off", ...WITHOUT_OWN_LIMITS, ...environment },
      { main },
    ),
  );
}

/** Returns the server in a process when it listens. */
export async function servingBy(child: ChildProcess): Promise<Serving> {
  const ended = endOf(child);
  const log = followLog(child);
  const failed = ended.then(({ code, stdout, stderr }) => {
    throw new Error(`serve exited with code ${code}: ${stderr}${stdout}`);
  });
  const { url } = await Promise.race([log((line) => line.url !== undefined), failed]);
  return {
    pid: child.pid ?? 0,
    url,
    ended,
    kill: (signal) => child.kill(signal),
    logged: (message) => Promise.race([log((line) => line.msg === message), failed]),
  };
}

function start(
  args: readonly string[],
  environment: Record<string, string>,
  { input, main = MAIN }: RunOptions,
): ChildProcess {
  const env = { PATH: process.env.PATH, ...environment };
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(process.execPath, [main, ...args], { env, stdio: [stdin, "pipe", "pipe"] });
  void Promise.resolve(input).then((text) => child.stdin?.end(text));
  return child;
}

async function endOf(child: ChildProcess): Promise<Ended> {
  const texts = [child.stdout, child.stderr].map((stream) => {
    const chunks: Buffer[] = [];
    stream?.on("data", (chunk) => chunks.push(chunk));
    return () => Buffer.concat(chunks).toString();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      const [stdout = "", stderr = ""] = texts.map((text) => text());
      resolve({ code, signal, stdout, stderr });
    });
  });
}

type Waiter = { readonly wanted: (line: Json) => boolean; readonly found: (line: Json) => void };

function followLog(child: ChildProcess): (wanted: (line: Json) => boolean) => Promise<Json> {
  const lines: Json[] = [];
  let waiters: Waiter[] = [];
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = JSON.parse(text);
      lines.push(line);
      for (const { wanted, found } of waiters) if (wanted(line)) found(line);
      waiters = waiters.filter(({ wanted }) => !wanted(line));
    });
  }
  return (wanted) =>
    new Promise((found) => {
      const past = lines.find(wanted);
      if (past !== undefined) found(past);
      else waiters.push({ wanted, found });
    });
}

/** A data directory of the command. */
export interface DataDir {
  readonly path: string;
  /** Returns the process id of the embedded PostgreSQL, from its pid file. */
  postmaster(): Promise<number>;
  /** Returns the commands of the processes that use the folder, and of the watchdogs of all postmasters returned by `postmaster`. */
  processes(): Promise<string[]>;
  remove(): Promise<void>;
}

export function newDataDir(): DataDir {
  const path = join(inject("testDir"), `keyhold-${randomUUID()}`);
  const clusterDir = join(path, "postgres");
  const named = new Set<number>();
  return {
    path,
    postmaster: async () => {
      const pid = (await readPidFile(clusterDir))?.pid;
      if (pid === undefined) throw new Error(`no PostgreSQL runs on ${path}`);
      named.add(pid);
      return pid;
    },
    processes: async () => {
      const found = await Promise.all(
        (await runningProcesses()).map(async ({ pid, command }) => {
          const watched = Number(/keyhold-watchdog (\d+)/.exec(command)?.[1]);
          return named.has(watched) || (await worksIn(pid, clusterDir)) ? [command] : [];
        }),
      );
      return found.flat();
    },
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }),
  };
}

/** Returns the children of a process whose command contains this text. */
export async function childrenOf(parent: number, text = ""): Promise<number[]> {
  const found = (await runningProcesses()).filter((one) => one.parent === parent && one.command.includes(text));
  return found.map(({ pid }) => pid);
}

async function runningProcesses(): Promise<(ProcessInfo & { readonly pid: number })[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(pids.map(async (pid) => ({ pid, info: await describeProcess(pid) })));
  return found.flatMap(({ pid, info }) => (info === undefined ? [] : { pid, ...info }));
}

/** Starts the server on a data directory. The server and all its children exit with the test. */
export async function serveForTest(dataDir: DataDir, environment: Record<string, string>): Promise<Serving> {
  const server = await serve(environment);
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
    await eventually(async () => (await dataDir.processes()).length === 0);
  });
  return server;
}

/** Polls every 10 ms for a condition without an event. The test's timeout applies. */
export async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}
