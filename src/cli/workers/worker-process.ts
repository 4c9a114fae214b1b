import type { ChildProcess } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { KeyholdError } from "../../errors.ts";
import type { Running } from "../../lib/supervise.ts";
import { giveBackConnections } from "./give-back.ts";
import type { Order, Report } from "./messages.ts";

/** A worker that serves. */
export interface WorkerProcess extends Running {
  readonly url: string;
  say(order: Order): void;
}

/** Longer than a worker takes to finish what is under way (`closeTimeout`) and to let go of the database; milliseconds. */
const STOP_TIMEOUT = 25_000;

/**
 * Starts a worker and resolves when it serves. Rejects with the worker's own error; nothing is left of it then.
 */
export async function startWorker(
  start: Extract<Order, { readonly kind: "start" }>,
  signal: AbortSignal,
): Promise<WorkerProcess> {
  const worker = cluster.fork();
  const exited = endOf(worker);
  giveBackConnections(worker.process);
  const kill = () => void worker.process.kill("SIGKILL");
  signal.addEventListener("abort", kill);
  const say = (order: Order) => tell(worker, order);
  try {
    say(start);
    const url = await served(worker, exited);
    return { pid: worker.process.pid ?? 0, url, exited, say, stop: () => stop(worker, exited) };
  } catch (error) {
    await exited;
    throw error;
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

/** How the process ended, in words. That a message does not reach it any more is an error event too, and tells nothing else. */
function endOf(worker: Worker): Promise<string> {
  const child: ChildProcess = worker.process;
  worker.on("error", () => {});
  return new Promise((resolve) => {
    child.on("error", (error) => child.pid ?? resolve(`error "${error.message}"`));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
}

/** A worker that is just dying is told in vain. */
function tell(worker: Worker, order: Order): void {
  if (worker.isConnected()) worker.process.send(order, undefined, undefined, () => {});
}

/** The address that the worker reports. Its last message may be read after its exit, but not after the end of the channel too. */
function served(worker: Worker, exited: Promise<string>): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.on("message", (report: Report) => {
      if (report.kind === "serving") resolve(report.url);
      else reject(new KeyholdError(report.code, report.message));
    });
    worker.process.once("close", async () => {
      reject(new KeyholdError("INTERNAL", `a worker ended before it served: ${await exited}`));
    });
  });
}

/** The order goes by message: signals come to workers from elsewhere too, and a second one would cut off what is under way. */
async function stop(worker: Worker, exited: Promise<string>): Promise<void> {
  tell(worker, { kind: "stop" });
  const timer = new AbortController();
  const late = sleep(STOP_TIMEOUT, undefined, { signal: timer.signal }).then(() => worker.process.kill("SIGKILL"));
  await exited;
  timer.abort();
  await late.catch(() => {});
}
