import { open, readFile, rename, rm } from "node:fs/promises";
import { invalidArgument } from "../../domain/errors.ts";
import { parseJson } from "../../lib/json.ts";
import type { Position } from "./row.ts";

/** How far an import has come: what stands before the position is done with, and counted. */
export interface Progress extends Position {
  /** Random, of this import of this file: it makes the `request_id` of each row, so that no row is imported twice. */
  readonly importId: string;
  /** Of the server that it is imported into. */
  readonly url?: string | undefined;
  /** Of the file that is imported: another one cannot be gone on with. */
  readonly size: number;
  readonly modifyTime: number;
  /** Of a CSV file, once its header was read. */
  readonly columns?: readonly string[] | undefined;
  readonly imported: number;
  readonly existing: number;
  readonly failed: number;
  /** Bytes of the file of failures that tell of rows before the position. */
  readonly failureBytes: number;
}

const NUMBERS = ["row", "line", "end", "size", "modifyTime", "imported", "existing", "failed", "failureBytes"] as const;

/** Undefined: there is none, so the import begins. */
export async function loadProgress(path: string): Promise<Progress | undefined> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const progress = parseJson(text);
  if (isProgress(progress)) return progress;
  throw invalidArgument(path, "is no progress of an import; remove it to begin anew");
}

function isProgress(value: unknown): value is Progress {
  if (typeof value !== "object" || value === null || !("importId" in value)) return false;
  return typeof value.importId === "string" && NUMBERS.every((name) => Number.isFinite(Reflect.get(value, name)));
}

/** Replaces the file as a whole: whenever the command ends, by SIGKILL or a loss of power too, the old or the new one is there. */
export async function saveProgress(path: string, progress: Progress): Promise<void> {
  const next = `${path}.new`;
  const file = await open(next, "w", 0o600);
  try {
    await file.writeFile(`${JSON.stringify(progress)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(next, path);
}

export function removeProgress(path: string): Promise<void> {
  return rm(path, { force: true });
}
