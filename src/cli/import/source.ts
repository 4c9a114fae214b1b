import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { invalidArgument } from "../../domain/errors.ts";

/** Where rows come from. */
export interface Source {
  /** Null: a stream, which cannot be gone on with in another run. */
  readonly path: string | null;
  /** Bytes; 0 for a stream. */
  readonly size: number;
  /** Milliseconds since the epoch; 0 for a stream. */
  readonly modifyTime: number;
  readonly format: FormatName;
  /** The bytes from a place on, until the signal. A stream can be read once, from its beginning. */
  read(from: number, signal: AbortSignal): AsyncIterable<Buffer>;
}

export type FormatName = "jsonl" | "csv";

const BY_EXTENSION: readonly (readonly [RegExp, FormatName])[] = [
  [/\.(?:jsonl|ndjson|jsonlines)$/i, "jsonl"],
  [/\.csv$/i, "csv"],
];

const READ_SIZE = 256 * 1024;

/** `-` is standard input. */
export async function openSource(path: string, wanted: FormatName | undefined): Promise<Source> {
  const format = wanted ?? BY_EXTENSION.find(([extension]) => extension.test(path))?.[1];
  if (format === undefined)
    throw invalidArgument("--format", "is needed, jsonl or csv: the name of the file does not say");
  if (path === "-") return fromStdin(format);
  const { size, mtimeMs } = await stat(path);
  const read = (from: number, signal: AbortSignal) =>
    createReadStream(path, { start: from, highWaterMark: READ_SIZE, signal });
  return { path, size, modifyTime: mtimeMs, format, read };
}

function fromStdin(format: FormatName): Source {
  const read = (_from: number, signal: AbortSignal) => addAbortSignal(signal, process.stdin);
  return { path: null, size: 0, modifyTime: 0, format, read };
}
