import { type Client, Code, ConnectError } from "@connectrpc/connect";
import {
  BatchCreateImportedApiKeysError,
  type BatchCreateImportedApiKeysResponse,
  BatchCreateImportedApiKeysResponseSchema,
  type CreateImportedApiKeyRequest,
  type ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { errorReason } from "../../client/errors.ts";
import { type RetryOptions, withRetries } from "../retry.ts";
import type { Row, RowFailure } from "./records.ts";

export interface Item {
  readonly row: Row;
  readonly request: CreateImportedApiKeyRequest;
}

export interface Outcome {
  readonly imported: number;
  readonly failures: readonly RowFailure[];
}

/** A call in flight completes after the signal. */
export interface SendOptions extends RetryOptions {
  readonly importedApiKeys: Pick<Client<typeof ImportedApiKeysService>, "batchCreateImportedApiKeys">;
}

/** Maximum rows per call: the limit of the server. */
export const MAX_ROWS = 1000;

/**
 * Sends rows in one call, with retries: each row has a `request_id`, so a repeat creates no second key. Splits calls that are too large. Runs in
 * browsers too.
 */
export async function send(items: readonly Item[], options: SendOptions): Promise<Outcome> {
  if (items.length === 0) return { imported: 0, failures: [] };
  try {
    return outcomeOf(items, await withRetries(() => call(items, options), options));
  } catch (error) {
    if (!(error instanceof ConnectError) || !isTooLarge(error)) throw error;
    if (items.length === 1) {
      const failure = { reason: "INVALID_ARGUMENT", message: error.rawMessage };
      return { imported: 0, failures: items.map(({ row }) => ({ row, ...failure })) };
    }
    const half = Math.ceil(items.length / 2);
    const first = await send(items.slice(0, half), options);
    const second = await send(items.slice(half), options);
    return { imported: first.imported + second.imported, failures: [...first.failures, ...second.failures] };
  }
}

/** Whether the error concerns the call as a whole, such as its size: smaller calls may succeed. */
function isTooLarge(error: ConnectError): boolean {
  if (error.code === Code.InvalidArgument) return true;
  return error.code === Code.ResourceExhausted && errorReason(error) !== "RATE_LIMITED";
}

function outcomeOf(items: readonly Item[], { results, successCount }: BatchCreateImportedApiKeysResponse): Outcome {
  const failures = results.flatMap(({ index, errorCode, errorMessage = "" }): RowFailure[] => {
    const item = items[index];
    if (errorCode === undefined || item === undefined) return [];
    return [{ row: item.row, reason: BatchCreateImportedApiKeysError[errorCode] ?? "", message: errorMessage }];
  });
  return { imported: successCount, failures };
}

/** If all rows fail, the call fails, and the error details contain the results. */
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

/** Whether the raw key exists. A lookup prefix that another key has is a failure: the row's key is not imported. */
export function isExisting({ reason, message }: RowFailure): boolean {
  return reason === "ALREADY_EXISTS" && message.startsWith("raw_key");
}
