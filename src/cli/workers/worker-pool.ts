import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { type Supervised, supervise } from "../../lib/supervise.ts";
import type { PrimaryMessage } from "./ipc.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

export type WorkerPool = Awaited<ReturnType<typeof startWorkerPool>>;

const LAUNCHER = fileURLToPath(new URL("../../../src/cli/keyhold.js", import.meta.url));

/**
 * Starts the workers and restarts those that fail. The primary listens and distributes connections round robin, so that no connection waits
 * for a dead worker. Rejects with the error of the first worker that cannot start, after all have exited.
 */
export async function startWorkerPool(
  configured: number,
  databaseUrl: string | null,
  log: (level: "info" | "error", message: string) => void,
) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: LAUNCHER, args: ["worker"] });
  const numbers = Array.from({ length: configured }, (_, index) => index + 1);
  const uncaught = new Map(numbers.map((number) => [number, 0]));
  const running = new Set<WorkerProcess>();
  /** Workers that have failed and finish their calls in flight. */
  const failed = new Set<WorkerProcess>();
  let started = 0;
  const broadcastCount = () => {
    const message: PrimaryMessage = { kind: "count", count: { running: running.size, configured } };
    for (const worker of running) worker.send(message);
  };
  // Node closes the port with the last listening worker, so that one serves until a replacement listens.
  const retire = (worker: WorkerProcess) => {
    running.delete(worker);
    failed.add(worker);
    broadcastCount();
    if (running.size > 0) void worker.stop();
  };
  const start = async (number: number, signal: AbortSignal) => {
    const onUncaught = () => uncaught.set(number, (uncaught.get(number) ?? 0) + 1);
    const worker = await startWorker({ kind: "start", number, databaseUrl }, signal, onUncaught);
    running.add(worker);
    started++;
    broadcastCount();
    for (const predecessor of failed) void predecessor.stop();
    void worker.failed.then(() => retire(worker));
    void worker.exited.then(() => failed.delete(worker) || (running.delete(worker) && broadcastCount()));
    return worker;
  };
  const stopCurrent = await startAll(
    numbers.map((number) => supervise(`worker ${number}`, (signal) => start(number, signal), log)),
  );
  return {
    url: [...running][0]?.url ?? "",
    gatewayUrl: [...running][0]?.gatewayUrl,
    /** Returns how many accept connections, how many should, replacements started, and uncaught exceptions by the number of the worker. */
    counts: () => ({ running: running.size, configured, restarts: started - configured, uncaught }),
    /** Returns the metrics of the workers that respond. */
    scrape: async () => {
      const snapshots = await Promise.all([...running].map((worker) => worker.scrape()));
      return snapshots.filter((snapshot) => snapshot !== null);
    },
    /** Stops the workers after their calls in flight. */
    stop: async () => {
      await Promise.all([stopCurrent(), ...[...failed].map((worker) => worker.stop())]);
    },
  };
}

/** Returns a function that stops all. If one fails to start, stops the others and rejects with its error. */
async function startAll(starts: readonly Promise<Supervised>[]): Promise<() => Promise<void>> {
  const results = await Promise.allSettled(starts);
  const stop = async () => {
    await Promise.all(results.map((result) => result.status === "fulfilled" && result.value.stop()));
  };
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return stop;
  await stop();
  throw failed.reason;
}
