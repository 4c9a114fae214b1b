import type { ErrorCode } from "../../domain/errors.ts";
import type { Snapshot } from "../../observability/metrics/registry.ts";
import type { CountWorkers } from "../../transport/services/health.ts";

export type PrimaryMessage =
  /** The first message. `databaseUrl` is that of the embedded database, otherwise null: the worker's configuration has it. */
  | { readonly kind: "start"; readonly number: number; readonly databaseUrl: string | null }
  /** Sent when the number of workers changes. */
  | { readonly kind: "count"; readonly count: WorkerCount }
  | { readonly kind: "scrape" }
  /** Requests shutdown after the calls in flight. */
  | { readonly kind: "stop" };

/** A message from a worker to the primary: first `serving` or `failed`, once; later the others. */
export type WorkerMessage =
  | { readonly kind: "serving"; readonly url: string; readonly gatewayUrl: string | undefined }
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "metrics"; readonly snapshot: Snapshot }
  /** An uncaught exception. After the first one the worker waits for `stop`, until its replacement serves. */
  | { readonly kind: "uncaught" };

export type WorkerCount = ReturnType<CountWorkers>;
