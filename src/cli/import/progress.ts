import { randomUUID } from "node:crypto";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, parseJson } from "../../lib/json.ts";
import { readIfExists } from "../../lib/whole-file.ts";
import { shortenUrls } from "../redact.ts";
import type { Source } from "./source.ts";

/** The state of an import. Rows up to `row`, which ends at the byte `end`, are imported or failed, and counted. */
export type Progress = Readonly<ReturnType<typeof newProgress>>;

/** `failureBytes` is the size of the failure file with these rows. */
const NONE = { row: 0, end: 0, imported: 0, existing: 0, failed: 0, failureBytes: 0 };

/** `importId` becomes part of the `request_id` of each row, so that no row is imported twice. A changed file cannot be resumed. */
export function newProgress({ size, modifyTime }: Source, url?: string) {
  return { importId: String(randomUUID()), url, size, modifyTime, ...NONE };
}

/** Returns the saved progress; undefined if there is none. Rejects that of another file or server. */
export async function loadProgress(path: string, source: Source, url?: string): Promise<Progress | undefined> {
  const text = await readIfExists(path);
  if (text === null) return undefined;
  const progress: unknown = parseJson(text);
  if (!isProgress(progress))
    throw invalidArgument(path, "is not a progress file; choose another path for the progress file");
  if (progress.size !== source.size || progress.modifyTime !== source.modifyTime)
    throw invalidArgument(
      path,
      "belongs to an earlier version of the imported file; remove the progress file to start over",
    );
  // Progress files of release 0.1 have no URL.
  if (progress.url !== undefined && progress.url !== url) {
    const remedy = "resume with the same --url, or remove the progress file to start over";
    throw invalidArgument(path, `is the progress file of an import into ${shortenUrls(progress.url)}; ${remedy}`);
  }
  return progress;
}

function isProgress(value: unknown): value is Progress {
  if (!isJsonObject(value)) return false;
  const numbers = ["size", "modifyTime", ...Object.keys(NONE)];
  return typeof value.importId === "string" && numbers.every((name) => Number.isFinite(value[name]));
}
