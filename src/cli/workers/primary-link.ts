import type { Worker } from "node:cluster";
import type { Order, WorkerCount } from "./ipc.ts";

/** The parent, as a worker hears it. */
export interface Primary {
  readonly started: Promise<Extract<Order, { readonly kind: "start" }>>;
  /** How many workers there are, by what the parent said last. */
  readonly count: () => WorkerCount;
  /** Calls the listener whenever the parent wants the metrics, with the number of its question. */
  onScrape(listener: (number: number) => void): void;
  /** Resolves, with why, when the worker is to end. Without a parent one that does not wait for this ends at once. */
  untilStopped(): Promise<string>;
}

export function listenToPrimary(worker: Worker): Primary {
  const started = Promise.withResolvers<Extract<Order, { readonly kind: "start" }>>();
  const stopped = Promise.withResolvers<string>();
  let scrape: (number: number) => void = () => {};
  let count: WorkerCount = { running: 0, configured: 0 };
  worker.process.on("message", (order: Order) => {
    if (order.kind === "start") started.resolve(order);
    else if (order.kind === "count") count = order.count;
    else if (order.kind === "scrape") scrape(order.number);
    else stopped.resolve("the parent's order");
  });
  return {
    started: started.promise,
    count: () => count,
    onScrape: (listener) => {
      scrape = listener;
    },
    untilStopped() {
      worker.once("disconnect", () => {
        // Else Node ends the process now, with all that is under way.
        worker.exitedAfterDisconnect = true;
        stopped.resolve("the parent has gone");
      });
      return stopped.promise;
    },
  };
}
