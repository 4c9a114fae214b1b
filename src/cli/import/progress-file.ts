import { open, readFile, rename, rm } from "node:fs/promises";
import { invalidArgument } from "../../domain/errors.ts";
import { parseJson } from "../../lib/json.ts";
import type { Position } from "./row.ts";

/** The state of an import. Rows before the position are done and counted. */
export interface Progress extends Position {
  /** Random identifier of this import, part of the `request_id` of each row, so that no row is imported twice. */
  readonly importId: string;
  /** The URL of the target server. */
  readonly url?: string | undefined;
  /** Size and modification time of the imported file: a changed file cannot be resumed. */
  readonly size: number;
  readonly modifyTime: number;
  /** Columns of a CSV file, once the header is read. */
  readonly columns?: readonly string[] | undefined;
  readonly imported: number;
  readonly existing: number;
  readonly failed: number;
  /** Bytes of the failure file that concern rows before the position. */
  readonly failureBytes: number;
}

const NUMBERS = ["row", "line", "end", "size", "modifyTime", "imported", "existing", "failed", "failureBytes"] as const;

/** Returns the saved progress; undefined if there is none. */
export async function loadProgress(path: string): Promise<Progress | undefined> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const progress = parseJson(text);
  if (isProgress(progress)) return progress;
  throw invalidArgument(path, "is not a progress file; remove it to start over");
}

function isProgress(value: unknown): value is Progress {
  if (typeof value !== "object" || value === null || !("importId" in value)) return false;
  return typeof value.importId === "string" && NUMBERS.every((name) => Number.isFinite(Reflect.get(value, name)));
}

/** Replaces the file atomically: after a SIGKILL or power loss it has either the old or the new content. */
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
