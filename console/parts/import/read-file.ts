import type { CreateImportedApiKeyRequest } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { csvFormat } from "../../../src/cli/import/csv.ts";
import { checkHeaderForm, type RowOptions } from "../../../src/cli/import/fields.ts";
import { type Row, type RowFailure, readRows } from "../../../src/cli/import/records.ts";
import { rowRequest } from "../../../src/cli/import/row-request.ts";
import type { Item } from "../../../src/cli/import/send.ts";
import { rawKeyWarnings } from "../../../src/credential/header-form.ts";
import { attempt, checkAll, invalidArgument, KeyholdError } from "../../../src/domain/errors.ts";
import { newExpiry, UNLIMITED } from "../../../src/domain/expiry.ts";
import { checkRawKey } from "../../../src/keys/raw-key-rules.ts";
import { secretHead } from "../../session/page-settings.ts";

/** A file as it will be imported. Like `keyhold keys import`, whose code reads it; the server checks the other rules. */
export interface ReadFile {
  /** The keys to import, each with its `request_id`. */
  readonly items: readonly Item[];
  /** The rows that cannot be imported. */
  readonly failures: readonly RowFailure[];
  /** The numbers of the lines whose raw keys a header may not carry. */
  readonly warnedLines: readonly number[];
}

/** Bytes that are parsed at a time, within some 10 ms. */
const CHUNK = 64 * 1024;

/** Returns the columns of a file. Throws if it has none that can be used. */
export async function readHeader(file: File): Promise<readonly string[]> {
  let header: readonly string[] | undefined;
  const format = csvFormat({ columns: {}, hash: {} }, (cells) => {
    header = cells;
  });
  for await (const _ of readRows(chunksOf(file), format)) if (header !== undefined) break;
  if (header === undefined) throw invalidArgument("file", "is empty");
  checkHeaderForm(header);
  return header;
}

interface Reading {
  readonly signal: AbortSignal;
  /** Called with the part of the file that is read, from 0 to 1. */
  readonly onRead: (part: number) => void;
}

/** Reads a file without sending anything. Throws if a quote is never closed. */
export async function readFile(file: File, options: RowOptions, reading: Reading): Promise<ReadFile> {
  const importId = crypto.randomUUID();
  const items: Item[] = [];
  const failures: RowFailure[] = [];
  const warnedLines: number[] = [];
  const lines = new Map<string, number>();
  const add = (row: Row) => {
    const request = attempt(() => requestOf(row, options, lines));
    if (request instanceof KeyholdError) {
      failures.push({ row, reason: "INVALID_ARGUMENT", message: request.message });
      return;
    }
    if (rawKeyWarnings(request.rawKey).length > 0) warnedLines.push(row.line);
    items.push({ row, request: Object.assign(request, { requestId: `${importId}:${row.row}` }) });
  };
  for await (const rows of readRows(chunksOf(file, reading), csvFormat(options))) rows.forEach(add);
  return { items, failures, warnedLines };
}

async function* chunksOf(file: File, reading?: Reading): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.size; at += CHUNK) {
    reading?.signal.throwIfAborted();
    yield new Uint8Array(await file.slice(at, at + CHUNK).arrayBuffer());
    reading?.onRead(Math.min(1, (at + CHUNK) / file.size));
  }
}

/** Returns the request of a row. Throws `INVALID_ARGUMENT`. `lines`: the lines of the raw keys and hashes before. */
function requestOf(
  { content, line }: Row,
  options: RowOptions,
  lines: Map<string, number>,
): CreateImportedApiKeyRequest {
  if (typeof content === "string") throw new KeyholdError("INVALID_ARGUMENT", content);
  const request = rowRequest(content, options);
  const { rawKey, rawKeyHash } = request;
  checkAll(
    () => rawKeyHash === undefined && checkRawKey(RULES, request),
    () => requireText("name", request.name),
    () => requireText("actor_id", request.actorId),
    () => newExpiry(request, UNLIMITED, Date.now()),
  );
  const field = rawKeyHash === undefined ? "raw_key" : "raw_key_hash";
  const identity = `${field} ${rawKeyHash?.phc ?? rawKeyHash?.value ?? rawKey}`;
  const first = lines.get(identity);
  if (first !== undefined) throw invalidArgument(field, `is the same as in line ${first}`);
  lines.set(identity, line);
  return request;
}

const RULES = { looksLikeOurs: (rawKey: string) => rawKey.startsWith(secretHead) };

function requireText(field: string, text: string): void {
  if (text === "") throw invalidArgument(field, "is required", "FIELD_REQUIRED");
}
