import { randomUUID } from "node:crypto";
import { invalidArgument } from "../../domain/errors.ts";
import type { Progress } from "./progress-file.ts";
import { START } from "./row.ts";
import type { Source } from "./source.ts";

/** The files that an import writes. */
export interface Files {
  /** Null if no progress is saved: on a dry run or from stdin. */
  readonly progress: string | null;
  readonly failures: string;
}

export interface FileOptions {
  readonly failures?: string;
  readonly progress?: string;
  readonly dryRun?: boolean;
}

export function filesOf({ path }: Source, { failures, progress, dryRun }: FileOptions): Files {
  const files = {
    progress: path === null || dryRun === true ? null : (progress ?? `${path}.progress`),
    failures: failures ?? `${path ?? "import"}.failures.jsonl`,
  };
  if (files.failures === path) throw invalidArgument("--failures", "must differ from the imported file");
  return files;
}

/** The input and the URL of the server; null on a dry run. */
export interface Target {
  readonly source: Source;
  readonly url: string | null;
}

/** Rejects progress of another file or server. Progress files of release 0.1 have no URL. */
export function requireSame({ source, url }: Target, earlier: Progress | undefined, path: string): void {
  if (earlier === undefined) return;
  if (earlier.size !== source.size || earlier.modifyTime !== source.modifyTime)
    throw invalidArgument(path, "belongs to the file before it changed; remove it to start over");
  if (earlier.url !== undefined && earlier.url !== url)
    throw invalidArgument(
      path,
      `belongs to an import into ${earlier.url}; resume with that --url, or remove it to start over`,
    );
}

export function newProgress({ source: { size, modifyTime }, url }: Target): Progress {
  const none = { imported: 0, existing: 0, failed: 0, failureBytes: 0 };
  return { importId: randomUUID(), url: url ?? undefined, size, modifyTime, ...START, ...none };
}
