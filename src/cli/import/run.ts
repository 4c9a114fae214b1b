import { type Batch, gather } from "./batches.ts";
import { Csv } from "./csv.ts";
import type { FailureFile, RowFailure } from "./failure-file.ts";
import { jsonLines } from "./json-lines.ts";
import type { Progress } from "./progress-file.ts";
import { readRows } from "./records.ts";
import { exists, type Outcome } from "./send.ts";
import type { Source } from "./source.ts";

export interface RunOptions {
  readonly send: (batch: Batch) => Promise<Outcome>;
  readonly failureFile: FailureFile;
  /** Told after each batch, in the order of the file. */
  readonly onProgress: (progress: Progress) => Promise<void>;
  /** Calls that are under way at once. */
  readonly concurrency: number;
  /** Whether a raw key that exists already is counted apart instead of as a failure. */
  readonly skipExisting: boolean;
  /** Ends the import behind the calls that are under way. */
  readonly signal: AbortSignal;
}

interface Sent {
  readonly batch: Batch;
  readonly outcome: Promise<Outcome>;
}

/**
 * Imports what stands behind `start`. Calls overlap, but what came of them is counted in the order of the file, so that there is
 * one place to go on from; what was sent beyond it is sent again then, to no effect. It takes the memory of the calls under way.
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
  for await (const batch of until(signal, gather(rows, start.importId))) {
    const first = inFlight.length < concurrency ? undefined : inFlight.shift();
    if (first !== undefined) await settle(first);
    inFlight.push(begin(batch, options));
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

function begin(batch: Batch, { send }: RunOptions): Sent {
  const outcome = send(batch);
  // Looked at in its turn; until then nobody has to know that it failed.
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
