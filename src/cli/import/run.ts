import { toBinary } from "@bufbuild/protobuf";
import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { rawKeyWarnings } from "../../credential/header-form.ts";
import { MAX_ITEMS_BYTES, responseSize } from "../../domain/response-size.ts";
import { csvFormat } from "./csv.ts";
import type { FailureFile } from "./failure-file.ts";
import type { RowOptions } from "./fields.ts";
import type { Progress } from "./progress.ts";
import { jsonLines, type Row, type RowFailure, readRows } from "./records.ts";
import { requestOf } from "./request.ts";
import { type Item, isExisting, MAX_ROWS, type Outcome } from "./send.ts";
import type { Source } from "./source.ts";

export interface RunOptions {
  readonly send: (batch: Batch) => Promise<Outcome>;
  readonly failureFile: FailureFile;
  /** Called before a row is sent whose raw key could be altered in an HTTP header. */
  readonly onWarnings: (row: Row, warnings: readonly string[]) => void;
  readonly rows: RowOptions;
  readonly concurrency: number;
  /** Whether existing raw keys are counted separately instead of as failures. */
  readonly skipExisting: boolean;
  /** Stops the import after the calls in flight. */
  readonly signal: AbortSignal;
}

/** The rows of one call, and the rows between them that are invalid locally. */
export interface Batch {
  readonly items: Item[];
  readonly failures: RowFailure[];
  /** The last row, after which the import resumes. */
  last: Row;
  /** An upper bound of the larger of request and response. */
  bytes: number;
}

/**
 * Imports the rows after `start`, and yields the progress after each batch. Calls overlap, but their outcomes are counted in file order, so
 * that the progress is one row number; on resume, rows beyond it are sent again, idempotently. Memory is bounded by the calls in flight.
 */
export async function* run(source: Source, start: Progress, options: RunOptions): AsyncGenerator<Progress> {
  const { signal, concurrency } = options;
  const isCsv = source.format === "csv";
  const read = () => readRows(source.read(signal), isCsv ? csvFormat(options.rows) : jsonLines);
  /** Functions that await a call and count its outcome. */
  const inFlight: (() => Promise<Progress>)[] = [];
  let progress = start;
  // A quote that is never closed fails the file before anything is imported.
  if (isCsv && start.row === 0) for await (const _ of until(signal, read()));
  for await (const batch of until(signal, batchRows(read(), start, options.rows))) {
    const first = inFlight.length < concurrency ? undefined : inFlight.shift();
    if (first !== undefined) yield first();
    const outcome = startSend(batch, options);
    inFlight.push(async () => {
      progress = await countOutcome(progress, batch, await outcome, options);
      return progress;
    });
  }
  for (const settle of inFlight) yield settle();
}

async function* until<T>(signal: AbortSignal, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Groups the rows after `start` into batches, in order. The request of a row gets a `request_id` of the row in this import. */
async function* batchRows(
  chunks: AsyncIterable<readonly Row[]>,
  start: Progress,
  options: RowOptions,
): AsyncGenerator<Batch> {
  let batch: Batch | undefined;
  for await (const rows of chunks) {
    for (const row of rows) {
      if (row.row <= start.row) continue;
      const request = requestOf(row, options);
      const bytes = typeof request === "string" ? 0 : sizeOf(request);
      // The server rejects a call that is too large, or whose response may be.
      if (batch !== undefined && batch.bytes + bytes > MAX_ITEMS_BYTES) {
        yield batch;
        batch = undefined;
      }
      batch ??= { items: [], failures: [], last: row, bytes: 0 };
      batch.last = row;
      batch.bytes += bytes;
      if (typeof request === "string") batch.failures.push({ row, reason: "INVALID_ARGUMENT", message: request });
      else {
        request.requestId = `${start.importId}:${row.row}`;
        batch.items.push({ row, request });
      }
      if (batch.items.length + batch.failures.length < MAX_ROWS) continue;
      yield batch;
      batch = undefined;
    }
  }
  if (batch !== undefined) yield batch;
}

/** Maximum length of a creator: `oidc:` and a subject (OpenID Connect Core §2). */
const CREATED_BY = "oidc:".padEnd(260);

/** Tag, length and text of the `request_id`, which is added later. */
const REQUEST_ID_BYTES = 80;

/**
 * Returns an upper bound of the bytes of the key in the request and in the response, whose limits are equal. The canonical text of a block
 * may be longer by its prefix length.
 */
function sizeOf(request: CreateImportedApiKeyRequest): number {
  const allowedCidrs = request.ipRestriction?.allowedCidrs.map((cidr) => `${cidr}/128`) ?? null;
  const sized = { ...request, createdBy: CREATED_BY, allowedCidrs, warnings: rawKeyWarnings(request.rawKey) };
  const requestBytes = toBinary(CreateImportedApiKeyRequestSchema, request).length + REQUEST_ID_BYTES;
  return Math.max(requestBytes, responseSize(sized));
}

function startSend(batch: Batch, { send, onWarnings }: RunOptions): Promise<Outcome> {
  for (const { row, request } of batch.items) {
    const warnings = rawKeyWarnings(request.rawKey);
    if (warnings.length > 0) onWarnings(row, warnings);
  }
  const outcome = send(batch);
  // Prevents an unhandled rejection before the batch is awaited in its turn.
  outcome.catch(() => undefined);
  return outcome;
}

async function countOutcome(before: Progress, batch: Batch, outcome: Outcome, options: RunOptions): Promise<Progress> {
  const { failureFile, skipExisting } = options;
  const failed = outcome.failures.filter((failure) => !skipExisting || !isExisting(failure));
  const failures = [...batch.failures, ...failed].sort((a, b) => a.row.row - b.row.row);
  const { row, end } = batch.last;
  return {
    ...before,
    row,
    end,
    imported: before.imported + outcome.imported,
    existing: before.existing + outcome.failures.length - failed.length,
    failed: before.failed + failures.length,
    failureBytes: await failureFile.append(failures),
  };
}
