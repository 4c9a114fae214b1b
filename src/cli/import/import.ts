import type { ConnectError } from "@connectrpc/connect";
import type { JsonObject } from "../../lib/json.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { boundHeapGrowth } from "../heap.ts";
import { writeObject } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { nextSignal } from "../signals.ts";
import type { Batch } from "./batches.ts";
import { openFailureFile } from "./failure-file.ts";
import { createProgressBar, type ProgressBar, silentProgressBar } from "./progress-bar.ts";
import { loadProgress, type Progress, removeProgress, saveProgress } from "./progress-file.ts";
import { type FileOptions, type Files, filesOf, newProgress, requireSame, type Target } from "./resume.ts";
import { run } from "./run.ts";
import { type Outcome, send } from "./send.ts";
import { type FormatName, openSource, type Source } from "./source.ts";

export interface ImportOptions extends RemoteOptions, FileOptions {
  readonly format?: FormatName;
  readonly failuresWithKeys?: boolean;
  readonly skipExisting: boolean;
  readonly concurrency: number;
  /** Milliseconds. */
  readonly retryFor: number;
}

/** Milliseconds between saves of the progress. After a SIGKILL, rows since the last save are sent again. */
const SAVE_INTERVAL = 1_000;

/** Imports the rows of a file or stdin (`-`), resuming an interrupted run. */
export async function importFile(path: string, options: ImportOptions): Promise<void> {
  boundHeapGrowth();
  const source = await openSource(path, options.format);
  const files = filesOf(source, options);
  const earlier = files.progress === null ? undefined : await loadProgress(files.progress);
  const remote = options.dryRun === true ? null : await openRemote(options);
  const target: Target = { source, url: remote?.url ?? null };
  requireSame(target, earlier, files.progress ?? "");
  const start = earlier ?? newProgress(target);
  const progressBar =
    options.json === true ? silentProgressBar : createProgressBar(process.stderr, start.end, start.row);
  if (start.row > 0) progressBar.log(`resuming after row ${start.row}`);
  const signal = interruption();
  const started = performance.now();
  const run = { options, remote, files, progressBar, signal };
  const end = await importRows(source, start, run).finally(() => progressBar.end());
  if (!signal.aborted && files.progress !== null) await removeProgress(files.progress);
  await report(end, files, options, { seconds: (performance.now() - started) / 1000, isComplete: !signal.aborted });
}

/** Returns a signal that the first SIGINT or SIGTERM aborts; the second exits at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  const second = nextSignal().then(() => {
    controller.abort();
    return nextSignal();
  });
  void second.then(() => process.exit(EXIT_STATUS.interrupted));
  return controller.signal;
}

interface Run {
  readonly options: ImportOptions;
  /** Null on a dry run. */
  readonly remote: Remote | null;
  readonly files: Files;
  readonly progressBar: ProgressBar;
  readonly signal: AbortSignal;
}

/** Returns the final progress. It is saved before the first call, but not if the header is invalid. */
async function importRows(source: Source, start: Progress, current: Run): Promise<Progress> {
  const { options, files, progressBar, signal } = current;
  const { concurrency, skipExisting, failuresWithKeys = false } = options;
  const save = async (progress: Progress) => files.progress !== null && saveProgress(files.progress, progress);
  const failureFile = await openFailureFile(files.failures, start.failureBytes, failuresWithKeys);
  let [latest, saved] = [start, performance.now()];
  const onProgress = async (progress: Progress) => {
    latest = progress;
    progressBar.show(progress.row, progress.failed, progress.end, source.size);
    if (performance.now() - saved < SAVE_INTERVAL) return;
    await save(progress);
    saved = performance.now();
  };
  let firstSave: Promise<unknown> | undefined;
  try {
    const call = sender(current);
    const send = async (batch: Batch) => {
      firstSave ??= save(start);
      await firstSave;
      return call(batch);
    };
    await run(source, start, { send, failureFile, onProgress, concurrency, skipExisting, signal });
  } catch (error) {
    if (!isInterruption(error)) throw error;
  } finally {
    await failureFile.close();
    if (firstSave !== undefined) await save(latest);
  }
  return latest;
}

/** An abort while waiting to retry; calls in flight complete. */
function isInterruption(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function sender({ options, remote, progressBar, signal }: Run): (batch: Batch) => Promise<Outcome> {
  if (remote === null) return async ({ items }) => ({ imported: items.length, failures: [] });
  const { importedApiKeys } = remote;
  let isUnreachable = false;
  const onUnreachable = (error: ConnectError) => {
    if (!isUnreachable) progressBar.log(`${explain(error)}; retrying`);
    isUnreachable = true;
  };
  return async ({ items }) => {
    const outcome = await send(items, { importedApiKeys, retryFor: options.retryFor, onUnreachable, signal });
    isUnreachable = false;
    return outcome;
  };
}

interface End {
  readonly seconds: number;
  readonly isComplete: boolean;
}

async function report(
  progress: Progress,
  { failures, progress: progressFile }: Files,
  options: ImportOptions,
  end: End,
): Promise<void> {
  const { row: rows, imported, existing, failed } = progress;
  const numbers: JsonObject =
    options.dryRun === true ? { rows, valid: imported, failed } : { rows, imported, existing, failed };
  const file: JsonObject = failed > 0 ? { failures_file: failures } : {};
  const seconds = Number(end.seconds.toFixed(1));
  await writeObject({ ...numbers, ...file, seconds, complete: end.isComplete }, options);
  if (existing > 0 && options.json !== true) console.error(existed(existing));
  if (!end.isComplete) {
    if (options.json !== true)
      console.error(`interrupted${progressFile === null ? "" : "; repeat the command to resume"}`);
    process.exitCode = EXIT_STATUS.interrupted;
  } else if (failed > 0) process.exitCode = EXIT_STATUS.partial;
}

function existed(count: number): string {
  return `${count} raw keys already exist and were left unchanged; --no-skip-existing reports them as failures`;
}
