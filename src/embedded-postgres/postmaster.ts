import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { KeyholdError } from "../domain/errors.ts";
import { exitOf, type Running } from "../lib/supervise.ts";
import { untilReady } from "./pid-file.ts";
import { type RunAs, startProgram } from "./process.ts";
import { shutDown, startWatchdog } from "./shutdown.ts";

export type Level = "info" | "warn" | "error";

/** Logs a line of the embedded server or an event of its supervision, without a line feed. */
export type Log = (level: Level, message: string) => void;

export interface StartOptions {
  readonly log: Log;
  /** Called when the server process has been started, before it accepts connections. */
  readonly onLaunched?: () => void;
  /** Time until the server must accept connections, crash recovery included. Default: two minutes. */
  readonly startTimeoutMs?: number;
  /** PostgreSQL configuration parameters that override ours. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostmasterOptions extends StartOptions {
  readonly runAs: RunAs;
  readonly program: string;
  readonly clusterDir: string;
  readonly socketDir: string;
}

export const defaultStartTimeoutMs = 120_000;

/** Identifies the process that started the server in the server's command line; `lock.ts` reads it. */
export const ownerMark = "cluster_name=keyhold-";

/** The log is terse so that it contains no value of a row; the client receives the errors of its statements. */
function settingsOf(options: PostmasterOptions): Readonly<Record<string, string>> {
  return {
    listen_addresses: "",
    port: "5432",
    unix_socket_directories: options.socketDir === options.clusterDir ? "." : `"${options.socketDir}"`,
    unix_socket_permissions: "0700",
    logging_collector: "off",
    log_destination: "stderr",
    log_line_prefix: "",
    log_checkpoints: "off",
    log_error_verbosity: "terse",
    log_min_error_statement: "panic",
    // For solid-state drives; PostgreSQL's default is for spinning disks.
    random_page_cost: "1.1",
    lc_messages: "C",
    timezone: "UTC",
    log_timezone: "UTC",
    ...options.settings,
  };
}

/**
 * Starts the server and resolves when it accepts connections. It is stopped by a fast shutdown: sessions are closed, everything committed is
 * on disk.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with the last lines of its log when it ends before that or takes too long.
 */
export async function startPostmaster(options: PostmasterOptions, signal: AbortSignal): Promise<Running> {
  const settings = Object.entries(settingsOf(options)).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const owner = ["-c", `${ownerMark}${process.pid}`];
  const command = [options.program, "-D", options.clusterDir, ...owner, ...settings];
  const child = startProgram(options.runAs, command, ["ignore", "ignore", "pipe"]);
  const { pid } = child;
  const exited = exitOf(child);
  const lastLines = followLog(child, options.log);
  if (pid === undefined) throw notStarted(await exited, lastLines);
  const watchdog = startWatchdog(pid);
  void exited.then(() => watchdog.kill("SIGKILL"));
  const postmaster = { pid, exited, stop: () => shutDown(pid, options.clusterDir, exited) };
  options.onLaunched?.();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(options.startTimeoutMs ?? defaultStartTimeoutMs)]);
  try {
    const result = await untilReady(options.clusterDir, pid, () => exited, limit);
    if (typeof result === "string") throw notStarted(result, lastLines);
    return postmaster;
  } catch (error) {
    await postmaster.stop();
    throw limit.aborted ? notStarted(String(limit.reason), lastLines) : error;
  }
}

function notStarted(why: string, lastLines: readonly string[]): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", [`PostgreSQL did not start: ${why}`, ...lastLines].join("\n  "));
}

/** Logs every line, and keeps the last ten for an error message. */
function followLog(child: ChildProcess, log: Log): readonly string[] {
  const last: string[] = [];
  if (child.stderr === null) return last;
  createInterface({ input: child.stderr }).on("line", (line) => {
    last.push(line);
    if (last.length > 10) last.shift();
    log(levelOf(line), line);
  });
  return last;
}

/** PostgreSQL's severities above `info` (PostgreSQL docs, table 19.2). */
const LEVELS: Readonly<Record<string, Level>> = { WARNING: "warn", ERROR: "warn", FATAL: "warn", PANIC: "error" };

/** Returns the level of a line such as `FATAL:  role "x" does not exist`. */
export function levelOf(line: string): Level {
  return LEVELS[/^[A-Z]+(?=: )/.exec(line)?.[0] ?? ""] ?? "info";
}
