import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { type Supervised, supervise } from "../../lib/supervise.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { Order } from "./ipc.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/** The workers of a port. */
export interface WorkerPool {
  /** Where they listen. */
  readonly url: string;
  readonly counts: () => WorkerCounts;
  /** The metrics of those that answer. */
  scrape(): Promise<Snapshot[]>;
  /** Lets them finish what is under way. */
  stop(): Promise<void>;
}

export interface WorkerCounts {
  /** How many accept connections, and how many should. */
  readonly running: number;
  readonly configured: number;
  /** How many were started in place of another. */
  readonly restarts: number;
  /** Uncaught exceptions by the number of the worker. */
  readonly uncaught: ReadonlyMap<number, number>;
}

const LAUNCHER = fileURLToPath(new URL("../../../src/cli/keyhold.js", import.meta.url));

/**
 * Starts as many workers as are configured, and keeps them up. The parent listens and hands connections out in turn, so that no
 * connection waits for a worker that has died. Rejects with the first error of a worker that cannot start; then none is left.
 */
export async function startWorkerPool(
  configured: number,
  databaseUrl: string | null,
  log: (level: "info" | "error", message: string) => void,
): Promise<WorkerPool> {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: LAUNCHER, args: ["worker"] });
  const numbers = Array.from({ length: configured }, (_, index) => index + 1);
  const uncaught = new Map(numbers.map((number) => [number, 0]));
  const running = new Set<WorkerProcess>();
  /** Those that have failed, and finish what is in flight. */
  const failed = new Set<WorkerProcess>();
  let started = 0;
  const tellCount = () => {
    const order: Order = { kind: "count", count: { running: running.size, configured } };
    for (const worker of running) worker.say(order);
  };
  // Node closes the port with the last worker that listens: that one listens until another does, and accepts nothing meanwhile.
  const retire = (worker: WorkerProcess) => {
    running.delete(worker);
    failed.add(worker);
    tellCount();
    if (running.size === 0) worker.holdConnections();
    else void worker.stop();
  };
  const start = async (number: number, signal: AbortSignal) => {
    const onUncaught = () => uncaught.set(number, (uncaught.get(number) ?? 0) + 1);
    const worker = await startWorker({ kind: "start", number, databaseUrl }, signal, onUncaught);
    running.add(worker);
    started++;
    tellCount();
    for (const one of failed) void one.stop();
    void worker.failed.then(() => retire(worker));
    void worker.exited.then(() => failed.delete(worker) || (running.delete(worker) && tellCount()));
    return worker;
  };
  const stopCurrent = await allOrNone(
    numbers.map((number) => supervise(`worker ${number}`, (signal) => start(number, signal), log)),
  );
  const stop = async () => {
    await Promise.all([stopCurrent(), ...[...failed].map((worker) => worker.stop())]);
  };
  const counts = () => ({ running: running.size, configured, restarts: started - configured, uncaught });
  const scrape = async () => {
    const snapshots = await Promise.all([...running].map((worker) => worker.scrape()));
    return snapshots.filter((snapshot) => snapshot !== null);
  };
  return { url: [...running][0]?.url ?? "", counts, scrape, stop };
}

/** What stops all of them. When one does not start, the others are stopped. */
async function allOrNone(starts: readonly Promise<Supervised>[]): Promise<() => Promise<void>> {
  const settled = await Promise.allSettled(starts);
  const stop = async () => {
    await Promise.all(settled.map((one) => one.status === "fulfilled" && one.value.stop()));
  };
  const failed = settled.find((one) => one.status === "rejected");
  if (failed === undefined) return stop;
  await stop();
  throw failed.reason;
}
