import type { ErrorCode } from "../../domain/errors.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { CountWorkers } from "../../transport/health.ts";

/** What the parent says to a worker, over the channel between them. */
export type Order =
  /** The first. `databaseUrl` is that of the embedded database, null with any other, whose URL the worker has itself. */
  | { readonly kind: "start"; readonly number: number; readonly databaseUrl: string | null }
  /** Whenever it has changed. */
  | { readonly kind: "count"; readonly count: WorkerCount }
  /** Tell your metrics. */
  | { readonly kind: "scrape"; readonly number: number }
  /** Finish what is under way, and end. */
  | { readonly kind: "stop" };

/** What a worker says to the parent: one of the first two, once, and later the others. */
export type Report =
  | { readonly kind: "serving"; readonly url: string }
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "metrics"; readonly number: number; readonly snapshot: Snapshot }
  /** An exception was not caught. After the first one the worker waits for the order to stop, until another serves in its place. */
  | { readonly kind: "uncaught" };

export type WorkerCount = ReturnType<CountWorkers>;
