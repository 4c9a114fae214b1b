import { randomUUID } from "node:crypto";
import { invalidArgument } from "../../domain/errors.ts";
import type { Progress } from "./progress-file.ts";
import { BEGINNING } from "./row.ts";
import type { Source } from "./source.ts";

/** What an import writes. */
export interface Files {
  /** Null: none is kept. */
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
  if (files.failures === path)
    throw invalidArgument("--failures", "must be another file than the one that is imported");
  return files;
}

/** What is imported, and into which server; null: into none. */
export interface Target {
  readonly source: Source;
  readonly url: string | null;
}

/** Rejects progress at `path` that is of another file or another server. A release before did not keep the server. */
export function requireSame({ source, url }: Target, earlier: Progress | undefined, path: string): void {
  if (earlier === undefined) return;
  if (earlier.size !== source.size || earlier.modifyTime !== source.modifyTime)
    throw invalidArgument(path, "is of the file as it was before it changed; remove it to begin anew");
  if (earlier.url !== undefined && earlier.url !== url)
    throw invalidArgument(
      path,
      `is of an import into ${earlier.url}; go on with that --url, or remove it to begin anew`,
    );
}

export function newProgress({ source: { size, modifyTime }, url }: Target): Progress {
  const none = { imported: 0, existing: 0, failed: 0, failureBytes: 0 };
  return { importId: randomUUID(), url: url ?? undefined, size, modifyTime, ...BEGINNING, ...none };
}
