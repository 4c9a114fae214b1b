import { type Batch, batchRows } from "./batches.ts";
import { Csv } from "./csv.ts";
import type { FailureFile, RowFailure } from "./failure-file.ts";
import type { Progress } from "./progress-file.ts";
import { jsonLines, readRows } from "./records.ts";
import { exists, type Outcome } from "./send.ts";
import type { Source } from "./source.ts";

export interface RunOptions {
  readonly send: (batch: Batch) => Promise<Outcome>;
  readonly failureFile: FailureFile;
  /** Called after each batch, in the order of the file. */
  readonly onProgress: (progress: Progress) => Promise<void>;
  /** Maximum number of calls in flight. */
  readonly concurrency: number;
  /** Whether existing raw keys are counted separately instead of as failures. */
  readonly skipExisting: boolean;
  /** Stops the import after the calls in flight. */
  readonly signal: AbortSignal;
}

interface Sent {
  readonly batch: Batch;
  readonly outcome: Promise<Outcome>;
}

/**
 * Imports the rows after `start`. Calls overlap, but their outcomes are counted in file order, so that the progress is a single position;
 * on resume, rows beyond it are sent again, idempotently. Memory is bounded by the calls in flight.
 */
export async function run(source: Source, start: Progress, options: RunOptions): Promise<void> {
  const { signal, concurrency } = options;
  const format = source.format === "csv" ? new Csv(start.columns) : jsonLines;
  const inFlight: Sent[] = [];
  let progress = start;
  const settle = async ({ batch, outcome }: Sent) => {
    const columns = format instanceof Csv ? format.columns : undefined;
    progress = await conclude({ ...progress, columns }, batch, await outcome, options);
    await options.onProgress(progress);
  };
  const rows = readRows(source.read(start.end, signal), format, start);
  for await (const batch of until(signal, batchRows(rows, start.importId))) {
    const first = inFlight.length < concurrency ? undefined : inFlight.shift();
    if (first !== undefined) await settle(first);
    inFlight.push(startSend(batch, options));
  }
  for (const sent of inFlight) await settle(sent);
}

async function* until<T>(signal: AbortSignal, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function startSend(batch: Batch, { send }: RunOptions): Sent {
  const outcome = send(batch);
  // Handled when its turn comes; avoids an unhandled rejection until then.
  outcome.catch(() => undefined);
  return { batch, outcome };
}

async function conclude(before: Progress, batch: Batch, outcome: Outcome, options: RunOptions): Promise<Progress> {
  const { failureFile, skipExisting } = options;
  const isSkipped = (failure: RowFailure) => skipExisting && exists(failure);
  const existing = outcome.failures.filter(isSkipped);
  const others = outcome.failures.filter((failure) => !isSkipped(failure));
  const failures = [...batch.failures, ...others].sort((a, b) => a.row.row - b.row.row);
  const { row, nextLine: line, end } = batch.last;
  return {
    ...before,
    row,
    line,
    end,
    imported: before.imported + outcome.imported,
    existing: before.existing + existing.length,
    failed: before.failed + failures.length,
    failureBytes: await failureFile.append(failures),
  };
}
