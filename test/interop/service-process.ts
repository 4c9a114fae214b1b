import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { LIMIT } from "../support/programs/run.ts";

/** A service that a shell script starts. */
export interface ServiceScript {
  readonly script: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** A URL that the service answers; absent: it answers none. */
  readonly url?: string;
}

/** Runs `body` while the service runs. Rejects with what the service printed if it or `body` fails. */
export async function whileServing<T>({ script, cwd, env, url }: ServiceScript, body: () => Promise<T>): Promise<T> {
  // A process group, because the script may start the service as a child.
  const service = spawn("bash", ["-c", script], {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const killWithUs = () => kill(service.pid);
  process.once("exit", killWithUs);
  const ended = once(service, "close");
  const output = Promise.all([text(service.stdout), text(service.stderr)]);
  const polling = new AbortController();
  const signal = AbortSignal.any([polling.signal, AbortSignal.timeout(LIMIT)]);
  try {
    const exited = ended.then(() => Promise.reject(new Error("the service exited")));
    if (url !== undefined) await Promise.race([listening(url, signal), exited]);
    return await Promise.race([body(), exited]);
  } catch (error) {
    kill(service.pid);
    throw new Error(`${error}\n${(await output).join("")}`, { cause: error });
  } finally {
    polling.abort();
    kill(service.pid);
    await ended;
    process.off("exit", killWithUs);
  }
}

/** Resolves when the service answers, which it may build first. There is no event for that in another process. */
async function listening(url: string, signal: AbortSignal): Promise<void> {
  while (!(await fetch(url, { signal }).then(Boolean, () => false))) await delay(200, undefined, { signal });
}

function kill(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has exited.
  }
}
