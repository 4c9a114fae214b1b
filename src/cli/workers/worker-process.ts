import type { ChildProcess } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { KeyholdError } from "../../domain/errors.ts";
import type { Running } from "../../lib/supervise.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { Order, Report } from "./ipc.ts";
import { reassignConnections } from "./reassign-connections.ts";

/** A worker that serves. */
export interface WorkerProcess extends Running {
  readonly url: string;
  readonly failed: Promise<string>;
  /** New connections wait until `stop` is called; then others accept them. */
  holdConnections(): void;
  say(order: Order): void;
  /** Its metrics; null of a worker that does not answer in time. Never rejects. */
  scrape(): Promise<Snapshot | null>;
}

/** Longer than a worker takes to finish what is under way (`closeTimeout`) and to let go of the database; milliseconds. */
const STOP_TIMEOUT = 25_000;

/** Prometheus waits 10 s for all of them; milliseconds. */
const SCRAPE_TIMEOUT = 2_000;

/**
 * Starts a worker and resolves when it serves. Rejects with the worker's own error; nothing is left of it then. `onUncaught` is called for
 * each exception that nothing in it caught.
 */
export async function startWorker(
  start: Extract<Order, { readonly kind: "start" }>,
  signal: AbortSignal,
  onUncaught: () => void,
): Promise<WorkerProcess> {
  const worker = cluster.fork();
  const exited = endOf(worker);
  const connections = reassignConnections(worker.process);
  const kill = () => void worker.process.kill("SIGKILL");
  signal.addEventListener("abort", kill);
  const say = (order: Order) => tell(worker, order);
  try {
    say(start);
    const url = await served(worker, exited);
    const failed = failureOf(worker, onUncaught);
    return {
      pid: worker.process.pid ?? 0,
      url,
      exited,
      failed,
      holdConnections: connections.hold,
      say,
      scrape: () => scrape(worker, exited),
      stop() {
        const stopped = stop(worker, exited);
        connections.release();
        return stopped;
      },
    };
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
      else if (report.kind === "failed") reject(new KeyholdError(report.code, report.message));
    });
    worker.process.once("close", async () => {
      reject(new KeyholdError("INTERNAL", `a worker ended before it served: ${await exited}`));
    });
  });
}

/** Resolves with the first uncaught exception. */
function failureOf(worker: Worker, onUncaught: () => void): Promise<string> {
  return new Promise((resolve) => {
    worker.on("message", ({ kind }: Report) => {
      if (kind !== "uncaught") return;
      onUncaught();
      resolve("uncaught exception");
    });
  });
}

let scrapes = 0;

/** One that dies, or hangs, is missing in this scrape. */
async function scrape(worker: Worker, exited: Promise<string>): Promise<Snapshot | null> {
  const number = ++scrapes;
  const answer = Promise.withResolvers<Snapshot>();
  const onReport = (report: Report) => {
    if (report.kind === "metrics" && report.number === number) answer.resolve(report.snapshot);
  };
  worker.on("message", onReport);
  tell(worker, { kind: "scrape", number });
  const ended = exited.then(() => null);
  const snapshot = await withTimeout(Promise.race([answer.promise, ended]), SCRAPE_TIMEOUT, () => null);
  worker.off("message", onReport);
  return snapshot;
}

/** The order goes by message: signals come to workers from elsewhere too, and a second one would cut off what is under way. */
async function stop(worker: Worker, exited: Promise<string>): Promise<void> {
  tell(worker, { kind: "stop" });
  await withTimeout(exited, STOP_TIMEOUT, () => worker.process.kill("SIGKILL"));
  await exited;
}
