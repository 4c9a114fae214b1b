import { type FileHandle, open, rm } from "node:fs/promises";
import { ERROR_FIELD } from "./fields.ts";
import type { RowFailure } from "./records.ts";

/** A JSON Lines file with one line per failure, created at the first. */
export type FailureFile = Awaited<ReturnType<typeof openFailureFile>>;

/**
 * Opens the file to append at `bytes`. `withKeys`: each line is the whole row, which can be corrected and imported; otherwise no line has a
 * cell, since any may hold a raw key if cells or columns are mixed up.
 */
export async function openFailureFile(path: string, bytes: number, withKeys: boolean) {
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
      const text = failures.map((failure) => `${JSON.stringify(lineOf(failure, withKeys))}\n`).join("");
      await file.write(text, size);
      await file.datasync();
      size += Buffer.byteLength(text);
      return size;
    },
    close: async () => file?.close(),
  };
}

function lineOf({ row: { row, line, content }, reason, message }: RowFailure, withKeys: boolean) {
  const error = { [ERROR_FIELD]: { row, line, reason, message } };
  return withKeys && typeof content !== "string" ? { ...error, ...content } : error;
}
