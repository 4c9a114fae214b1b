import type { CreateImportedApiKeyRequest } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { RowFailure } from "./failure-file.ts";
import { requestOf } from "./request.ts";
import type { Row } from "./row.ts";

/** The rows of one call, and the rows between them that are invalid locally. */
export interface Batch {
  readonly items: readonly Item[];
  readonly failures: readonly RowFailure[];
  /** The last row, after which the import resumes. */
  readonly last: Row;
}

export interface Item {
  readonly row: Row;
  readonly request: CreateImportedApiKeyRequest;
}

/** Maximum rows and bytes of the file per call. The server's limits are 1000 keys and 16 MiB. */
const MAX_ROWS = 1000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Groups rows into batches, in order. Each request gets a `request_id` of its row in this import. */
export async function* batchRows(chunks: AsyncIterable<readonly Row[]>, importId: string): AsyncGenerator<Batch> {
  let builder = new BatchBuilder(importId);
  for await (const rows of chunks) {
    for (const row of rows) {
      builder.add(row);
      if (!builder.isFull) continue;
      yield* builder.finish();
      builder = new BatchBuilder(importId);
    }
  }
  yield* builder.finish();
}

class BatchBuilder {
  readonly #importId: string;
  readonly #items: Item[] = [];
  readonly #failures: RowFailure[] = [];
  #start: number | undefined;
  #last: Row | undefined;

  constructor(importId: string) {
    this.#importId = importId;
  }

  add(row: Row): void {
    const request = requestOf(row);
    if (typeof request === "string") this.#failures.push({ row, reason: "INVALID_ARGUMENT", message: request });
    else {
      request.requestId = `${this.#importId}:${row.row}`;
      this.#items.push({ row, request });
    }
    this.#start ??= row.end;
    this.#last = row;
  }

  get isFull(): boolean {
    const count = this.#items.length + this.#failures.length;
    return count >= MAX_ROWS || (this.#last?.end ?? 0) - (this.#start ?? 0) >= MAX_BYTES;
  }

  finish(): Batch[] {
    return this.#last === undefined ? [] : [{ items: this.#items, failures: this.#failures, last: this.#last }];
  }
}
