import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type BatchCreateImportedApiKeysError,
  BatchCreateImportedApiKeysErrorSchema,
  type BatchCreateImportedApiKeysResponse,
  BatchCreateImportedApiKeysResponseSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { errorReason } from "../../client/errors.ts";
import type { Remote } from "../remote.ts";
import type { Item } from "./batches.ts";
import type { RowFailure } from "./failure-file.ts";

/** What became of some rows. */
export interface Outcome {
  readonly imported: number;
  readonly failures: readonly RowFailure[];
}

export interface SendOptions {
  readonly importedApiKeys: Pick<Remote["importedApiKeys"], "batchCreateImportedApiKeys">;
  /** Milliseconds for which a server that is away is called again. */
  readonly retryFor: number;
  /** Told before each wait. */
  readonly onUnreachable: (error: ConnectError) => void;
  /** Ends the waiting; a call that is under way comes to its end. */
  readonly signal: AbortSignal;
}

const ALREADY_EXISTS = "ALREADY_EXISTS";

/** Sends rows in one call, again and again while the server is away: each row has a `request_id`, so a repeat makes no second key. */
export async function send(items: readonly Item[], options: SendOptions): Promise<Outcome> {
  if (items.length === 0) return { imported: 0, failures: [] };
  try {
    return outcomeOf(items, await callWithRetries(items, options));
  } catch (error) {
    if (!(error instanceof ConnectError) || !isTooMuch(error)) throw error;
    if (items.length === 1) return { imported: 0, failures: items.map((item) => failureOf(item, error)) };
    return inHalves(items, options);
  }
}

async function inHalves(items: readonly Item[], options: SendOptions): Promise<Outcome> {
  const half = Math.ceil(items.length / 2);
  const first = await send(items.slice(0, half), options);
  const second = await send(items.slice(half), options);
  return { imported: first.imported + second.imported, failures: [...first.failures, ...second.failures] };
}

/** Of the call as a whole, such as a size: smaller calls may be taken. */
function isTooMuch(error: ConnectError): boolean {
  if (error.code === Code.InvalidArgument) return true;
  return error.code === Code.ResourceExhausted && errorReason(error) !== "RATE_LIMITED";
}

function failureOf({ row }: Item, error: ConnectError): RowFailure {
  return { row, reason: "INVALID_ARGUMENT", message: error.rawMessage };
}

function outcomeOf(items: readonly Item[], { results, successCount }: BatchCreateImportedApiKeysResponse): Outcome {
  const failures = results.flatMap(({ index, errorCode, errorMessage = "" }): RowFailure[] => {
    const item = items[index];
    if (errorCode === undefined || item === undefined) return [];
    return [{ row: item.row, reason: reasonOf(errorCode), message: errorMessage }];
  });
  return { imported: successCount, failures };
}

function reasonOf(code: BatchCreateImportedApiKeysError): string {
  const name = BatchCreateImportedApiKeysErrorSchema.value[code]?.name ?? "";
  return name.replace("BATCH_CREATE_IMPORTED_API_KEYS_ERROR_", "");
}

/** A raw key that is imported already, by another row or before this import. */
export function exists({ reason }: RowFailure): boolean {
  return reason === ALREADY_EXISTS;
}

const [FIRST_WAIT, LONGEST_WAIT] = [100, 5_000];

async function callWithRetries(
  items: readonly Item[],
  options: SendOptions,
): Promise<BatchCreateImportedApiKeysResponse> {
  const patience = performance.now() + options.retryFor;
  for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    try {
      return await call(items, options);
    } catch (error) {
      if (!(error instanceof ConnectError) || !isPassing(error) || performance.now() + wait > patience) throw error;
      options.onUnreachable(error);
      // Between half of it and all, so that those that failed together do not come again together.
      await sleep(wait * (0.5 + Math.random() / 2), undefined, { signal: options.signal });
    }
  }
}

/** When all rows fail the call does, and its error holds their results. */
async function call(
  items: readonly Item[],
  { importedApiKeys }: SendOptions,
): Promise<BatchCreateImportedApiKeysResponse> {
  try {
    return await importedApiKeys.batchCreateImportedApiKeys({ requests: items.map(({ request }) => request) });
  } catch (error) {
    const [results] = error instanceof ConnectError ? error.findDetails(BatchCreateImportedApiKeysResponseSchema) : [];
    if (results === undefined) throw error;
    return results;
  }
}

const PASSING: readonly Code[] = [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal];

/** What may be otherwise in a moment: the server, the database or the way there is away. */
function isPassing({ code }: ConnectError): boolean {
  return PASSING.includes(code);
}
