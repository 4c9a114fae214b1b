import type { CreateImportedApiKeyRequest } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { RowFailure } from "./failure-file.ts";
import { requestOf } from "./request.ts";
import type { Row } from "./row.ts";

/** What goes in one call, and the rows beside it that are bad by themselves. */
export interface Batch {
  readonly items: readonly Item[];
  readonly failures: readonly RowFailure[];
  /** The last row, behind which the import goes on. */
  readonly last: Row;
}

export interface Item {
  readonly row: Row;
  readonly request: CreateImportedApiKeyRequest;
}

/** Rows of a call, and bytes of the file: the server takes 1000 keys and 16 MiB. */
const MAX_ROWS = 1000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Gathers rows, in order. A request has the identity of its row in this import. */
export async function* gather(chunks: AsyncIterable<readonly Row[]>, importId: string): AsyncGenerator<Batch> {
  let gathering = new Gathering(importId);
  for await (const rows of chunks) {
    for (const row of rows) {
      gathering.add(row);
      if (!gathering.isFull) continue;
      yield* gathering.finish();
      gathering = new Gathering(importId);
    }
  }
  yield* gathering.finish();
}

class Gathering {
  readonly #importId: string;
  readonly #items: Item[] = [];
  readonly #failures: RowFailure[] = [];
  #begin: number | undefined;
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
    this.#begin ??= row.end;
    this.#last = row;
  }

  get isFull(): boolean {
    const count = this.#items.length + this.#failures.length;
    return count >= MAX_ROWS || (this.#last?.end ?? 0) - (this.#begin ?? 0) >= MAX_BYTES;
  }

  finish(): Batch[] {
    return this.#last === undefined ? [] : [{ items: this.#items, failures: this.#failures, last: this.#last }];
  }
}
