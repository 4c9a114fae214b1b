import { randomUUID } from "node:crypto";
import { invalidArgument } from "../../errors.ts";
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

export function requireSame({ size, modifyTime }: Source, earlier: Progress | undefined, path: string): void {
  if (earlier === undefined || (earlier.size === size && earlier.modifyTime === modifyTime)) return;
  throw invalidArgument(
    path,
    "is of the file as it was before it changed; remove it to begin anew, with --skip-existing",
  );
}

export function newProgress({ size, modifyTime }: Source): Progress {
  const none = { imported: 0, existing: 0, failed: 0, failureBytes: 0 };
  return { importId: randomUUID(), size, modifyTime, ...BEGINNING, ...none };
}
