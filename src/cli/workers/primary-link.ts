import type { Worker } from "node:cluster";
import type { PrimaryMessage, WorkerCount } from "./ipc.ts";

/** The primary, as seen by a worker. */
export interface Primary {
  readonly started: Promise<Extract<PrimaryMessage, { readonly kind: "start" }>>;
  /** Returns the number of workers. */
  readonly count: () => WorkerCount;
  /** Calls the listener when the primary requests the metrics, with the number of the request. */
  onScrape(listener: (number: number) => void): void;
  /** Resolves with the reason when the worker must stop. Until this is called, the loss of the primary exits at once. */
  stopped(): Promise<string>;
}

export function connectToPrimary(worker: Worker): Primary {
  const started = Promise.withResolvers<Extract<PrimaryMessage, { readonly kind: "start" }>>();
  const stopped = Promise.withResolvers<string>();
  let scrape: (number: number) => void = () => {};
  let count: WorkerCount = { running: 0, configured: 0 };
  worker.process.on("message", (message: PrimaryMessage) => {
    if (message.kind === "start") started.resolve(message);
    else if (message.kind === "count") count = message.count;
    else if (message.kind === "scrape") scrape(message.number);
    else stopped.resolve("stopped by the primary");
  });
  return {
    started: started.promise,
    count: () => count,
    onScrape: (listener) => {
      scrape = listener;
    },
    stopped() {
      worker.once("disconnect", () => {
        // Otherwise Node exits now, with calls in flight.
        worker.exitedAfterDisconnect = true;
        stopped.resolve("the primary has exited");
      });
      return stopped.promise;
    },
  };
}
