import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { addAbortSignal, type Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { invalidArgument } from "../../domain/errors.ts";
import { shownPath } from "../redact.ts";

export type Source = Awaited<ReturnType<typeof openSource>>;

export type FormatName = "jsonl" | "csv";

const BY_EXTENSION: readonly (readonly [RegExp, FormatName])[] = [
  [/\.(?:jsonl|ndjson|jsonlines)$/i, "jsonl"],
  [/\.csv$/i, "csv"],
];

const READ_SIZE = 256 * 1024;

/**
 * Opens a file, or stdin for `-`, which has no path, size or time, cannot be resumed, and as JSON Lines can be read once. `read` ends when its
 * signal aborts. Throws `INVALID_ARGUMENT` if the format is unknown.
 */
export async function openSource(path: string, wanted: FormatName | undefined) {
  const format = wanted ?? BY_EXTENSION.find(([extension]) => extension.test(path))?.[1];
  if (format === undefined)
    throw invalidArgument("--format", "is required (jsonl or csv): the file extension is missing or not recognized");
  if (path === "-") {
    const stdin = (signal: AbortSignal) => addAbortSignal(signal, process.stdin);
    return { path: null, size: 0, modifyTime: 0, format, read: format === "csv" ? heldInMemory(stdin) : stdin };
  }
  const { size, mtimeMs } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw invalidArgument("file", `${shownPath(path)} cannot be read (${error.code})`);
  });
  const read = (signal: AbortSignal) => createReadStream(path, { highWaterMark: READ_SIZE, signal });
  return { path, size, modifyTime: mtimeMs, format, read };
}

/** Returns a stream that can be read again, because only its end shows that a quote is never closed. */
function heldInMemory(open: (signal: AbortSignal) => Readable) {
  let held: Promise<Buffer> | undefined;
  return async function* (signal: AbortSignal) {
    held ??= buffer(open(signal));
    const bytes = await held;
    for (let at = 0; at < bytes.length; at += READ_SIZE) yield bytes.subarray(at, at + READ_SIZE);
  };
}
