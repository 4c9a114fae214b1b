import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { type Supervised, supervise } from "../../lib/supervise.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { Order } from "./messages.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/** The workers of a port. */
export interface Crew {
  /** Where they listen. */
  readonly url: string;
  /** How many run now, how many should, and how many were started in place of one that had ended. */
  readonly counts: () => { readonly running: number; readonly configured: number; readonly restarts: number };
  /** The metrics of those that answer. */
  scrape(): Promise<Snapshot[]>;
  /** Lets them finish what is under way. */
  stop(): Promise<void>;
}

const LAUNCHER = fileURLToPath(new URL("../../../src/cli/keyhold.js", import.meta.url));

/**
 * Starts as many workers as are configured, and keeps them up. The parent listens and hands connections out in turn, so that no
 * connection waits for a worker that has died. Rejects with the first error of a worker that cannot start; then none is left.
 */
export async function startCrew(
  configured: number,
  databaseUrl: string | null,
  log: (level: "info" | "error", message: string) => void,
): Promise<Crew> {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: LAUNCHER, args: ["worker"] });
  const running = new Set<WorkerProcess>();
  let started = 0;
  const tellCount = () => {
    const order: Order = { kind: "count", count: { running: running.size, configured } };
    for (const worker of running) worker.say(order);
  };
  const start = async (number: number, signal: AbortSignal) => {
    const worker = await startWorker({ kind: "start", number, databaseUrl }, signal);
    running.add(worker);
    started++;
    tellCount();
    void worker.exited.then(() => running.delete(worker) && tellCount());
    return worker;
  };
  const numbers = Array.from({ length: configured }, (_, index) => index + 1);
  const stop = await allOrNone(
    numbers.map((number) => supervise(`worker ${number}`, (signal) => start(number, signal), log)),
  );
  const counts = () => ({ running: running.size, configured, restarts: started - configured });
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
