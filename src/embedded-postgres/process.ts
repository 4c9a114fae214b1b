import { type ChildProcess, execFile, type StdioOptions, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { KeyholdError } from "../domain/errors.ts";

export interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

/** How to start a program as another user. */
export interface RunAs {
  /** Command that precedes the program; empty: none. */
  readonly prefix: readonly string[];
  /** User and group of the process; empty: ours. */
  readonly ids: Partial<UserIds>;
  /** Owner of its files; undefined: ours. */
  readonly owner: UserIds | undefined;
}

export const asOurselves: RunAs = { prefix: [], ids: {}, owner: undefined };

/** A running process. A zombie counts as ended: it holds no file and no memory. */
export type ProcessInfo = NonNullable<Awaited<ReturnType<typeof fromProc>>>;

/** Environment of child processes. Ours is never inherited because it contains secrets. */
export const childEnvironment: NodeJS.ProcessEnv = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  TZ: "UTC",
};

/** Returns the process `pid`, or undefined if none is visible. */
export function describeProcess(pid: number): Promise<ProcessInfo | undefined> {
  return (process.platform === "linux" ? fromProc(pid) : fromPs(pid)).catch(() => undefined);
}

/** proc(5): `pid (comm) state ppid …`, where comm may hold spaces and parentheses. */
async function fromProc(pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return undefined;
  const command = (await readFile(`/proc/${pid}/cmdline`, "utf8")).replaceAll("\0", " ");
  return { parent: Number(parent), command };
}

async function fromPs(pid: number): Promise<ProcessInfo | undefined> {
  const stdout = await runProgram(asOurselves, ["ps", "-ww", "-o", "ppid=,state=,command=", "-p", String(pid)]);
  const [, parent, state, command] = /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(stdout.trimEnd()) ?? [];
  if (command === undefined || state?.startsWith("Z")) return undefined;
  return { parent: Number(parent), command };
}

/** Evaluates `condition` every 20 ms and resolves with its first defined value. Rejects when `signal` is aborted. */
export async function poll<T>(condition: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    const answer = await condition();
    signal.throwIfAborted();
    if (answer !== undefined) return answer;
    await sleep(20, undefined, { signal });
  }
}

export async function untilGone(pid: number, signal: AbortSignal): Promise<void> {
  await poll(async () => ((await describeProcess(pid)) === undefined ? true : undefined), signal);
}

/** Sends a signal. A process that has already ended is not an error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Starts a program as the user in a new session, so that it does not receive a terminal's Ctrl-C. */
export function startProgram(runAs: RunAs, command: readonly string[], stdio: StdioOptions): ChildProcess {
  const [file = "", ...args] = [...runAs.prefix, ...command];
  return spawn(file, args, { ...runAs.ids, cwd: "/", env: childEnvironment, detached: true, stdio });
}

/**
 * Runs a program to its end, with `input` on its stdin, and returns its stdout.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with its output when it fails.
 */
export async function runProgram({ prefix, ids }: RunAs, command: readonly string[], input = ""): Promise<string> {
  const [file = "", ...args] = [...prefix, ...command];
  const running = promisify(execFile)(file, args, { ...ids, cwd: "/", env: childEnvironment });
  running.child.stdin?.on("error", () => {}).end(input);
  try {
    return (await running).stdout;
  } catch (error) {
    const { message, stdout = "", stderr = "" } = error as Error & { stdout?: string; stderr?: string };
    const program = command[0]?.split("/").at(-1);
    throw new KeyholdError("DATABASE_UNAVAILABLE", `${program} failed: ${`${stdout}${stderr}`.trim() || message}`);
  }
}
