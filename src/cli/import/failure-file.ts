import { type FileHandle, open, rm } from "node:fs/promises";
import { type ColumnMap, ERROR_FIELD } from "./fields.ts";
import type { Row } from "./records.ts";

/** Why a row was not imported. */
export interface RowFailure {
  readonly row: Row;
  /** `INVALID_ARGUMENT`, `ALREADY_EXISTS` or `INTERNAL`. */
  readonly reason: string;
  readonly message: string;
}

/** A JSON Lines file with one line per failure, created at the first. */
export type FailureFile = Awaited<ReturnType<typeof openFailureFile>>;

export interface FailureFileOptions {
  /** Each line is the whole row, which can be corrected and imported; otherwise neither raw keys nor hashes are written, only the name. */
  readonly withKeys: boolean;
  readonly columns: ColumnMap;
}

/** Opens the file to append at `bytes`. */
export async function openFailureFile(path: string, bytes: number, options: FailureFileOptions) {
  if (bytes === 0) await rm(path, { force: true });
  let file: FileHandle | undefined;
  let size = bytes;
  return {
    /** Appends and syncs; resolves with the size of the file in bytes. */
    append: async (failures: readonly RowFailure[]): Promise<number> => {
      if (failures.length === 0) return size;
      if (file === undefined) {
        file = await open(path, size === 0 ? "w" : "r+", 0o600);
        // Lines beyond `size` concern rows that will be sent again.
        await file.truncate(size);
      }
      const text = failures.map((failure) => `${JSON.stringify(lineOf(failure, options))}\n`).join("");
      await file.write(text, size);
      await file.datasync();
      size += Buffer.byteLength(text);
      return size;
    },
    close: async () => file?.close(),
  };
}

function lineOf({ row: { row, line, content }, reason, message }: RowFailure, options: FailureFileOptions) {
  const error = { [ERROR_FIELD]: { row, line, reason, message } };
  if (typeof content === "string") return error;
  if (options.withKeys) return { ...error, ...content };
  const name = content[options.columns?.name ?? "name"];
  return typeof name === "string" ? { ...error, name } : error;
}
