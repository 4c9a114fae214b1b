import cluster, { type Worker } from "node:cluster";
import { KeyholdError } from "../../domain/errors.ts";
import { exitOf } from "../../lib/supervise.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { Service } from "../../server/service.ts";
import type { PrimaryMessage, WorkerMessage } from "./ipc.ts";
import { reassignConnections } from "./reassign-connections.ts";

export type WorkerProcess = Awaited<ReturnType<typeof startWorker>>;

/** Milliseconds. Longer than a worker needs for calls in flight (`closeTimeout`) and to close the database. */
const STOP_TIMEOUT = 25_000;

/** Milliseconds. Prometheus's scrape timeout is 10 s. */
const SCRAPE_TIMEOUT = 2_000;

/**
 * Starts a worker; resolves when it serves. Rejects with the worker's error after it has exited. `onUncaught` is called for each uncaught
 * exception in it.
 */
export async function startWorker(
  start: Extract<PrimaryMessage, { readonly kind: "start" }>,
  signal: AbortSignal,
  onUncaught: () => void,
) {
  const worker = cluster.fork();
  // An undeliverable message is an error, and ignored.
  worker.on("error", () => {});
  const exited = exitOf(worker.process);
  reassignConnections(worker.process);
  const kill = () => void worker.process.kill("SIGKILL");
  signal.addEventListener("abort", kill);
  const serving = Promise.withResolvers<Pick<Service, "url" | "gatewayUrl">>();
  const failed = Promise.withResolvers<string>();
  /** Concurrent scrapes share a request. A late response is that of the next one. */
  let scraped: PromiseWithResolvers<Snapshot | null> | undefined;
  const endScrape = (snapshot: Snapshot | null) => {
    scraped?.resolve(snapshot);
    scraped = undefined;
    return snapshot;
  };
  const scrape = () => {
    if (scraped === undefined) send(worker, { kind: "scrape" });
    scraped ??= Promise.withResolvers();
    return withTimeout(scraped.promise, SCRAPE_TIMEOUT, () => endScrape(null));
  };
  worker.on("message", (message: WorkerMessage) => {
    if (message.kind === "serving") serving.resolve({ url: message.url, gatewayUrl: message.gatewayUrl });
    else if (message.kind === "failed") serving.reject(new KeyholdError(message.code, message.message));
    else if (message.kind === "metrics") endScrape(message.snapshot);
    else {
      onUncaught();
      failed.resolve("uncaught exception");
    }
  });
  // The last message may arrive after the exit, but not after this event.
  worker.process.once("close", async () => {
    endScrape(null);
    serving.reject(new KeyholdError("INTERNAL", `a worker exited before it was ready to serve: ${await exited}`));
  });
  try {
    send(worker, start);
    const urls = await serving.promise;
    return {
      pid: worker.process.pid ?? 0,
      ...urls,
      exited,
      /** Resolves at the first uncaught exception. */
      failed: failed.promise,
      send: (message: PrimaryMessage) => send(worker, message),
      /** Returns its metrics; null on timeout or exit. Never rejects. */
      scrape,
      stop: () => stop(worker, exited),
    };
  } catch (error) {
    await exited;
    throw error;
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

/** Ignores failure: the worker may be exiting. */
function send(worker: Worker, message: PrimaryMessage): void {
  if (worker.isConnected()) worker.process.send(message, undefined, undefined, () => {});
}

/** Sends a message, not a signal: a worker may receive signals from elsewhere too, and a second one aborts calls in flight. */
async function stop(worker: Worker, exited: Promise<string>): Promise<void> {
  send(worker, { kind: "stop" });
  await withTimeout(exited, STOP_TIMEOUT, () => worker.process.kill("SIGKILL"));
  await exited;
}
