import type { ConnectError } from "@connectrpc/connect";
import type { JsonObject } from "../../lib/json.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { boundHeapGrowth } from "../heap.ts";
import { writeObject } from "../record.ts";
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

/** Milliseconds between two writings of the progress: what came after the last one is sent again after a SIGKILL. */
const SAVE_INTERVAL = 1_000;

/** Imports the rows of a file, or of standard input (`-`), and goes on with what an earlier run left. */
export async function importFile(path: string, options: ImportOptions): Promise<void> {
  boundHeapGrowth();
  const source = await openSource(path, options.format);
  const files = filesOf(source, options);
  const earlier = files.progress === null ? undefined : await loadProgress(files.progress);
  const remote = options.dryRun === true ? null : await openRemote(options);
  const target: Target = { source, url: remote?.url ?? null };
  requireSame(target, earlier, files.progress ?? "");
  const start = earlier ?? newProgress(target);
  const meter = options.json === true ? silentProgressBar : createProgressBar(process.stderr, start.end, start.row);
  if (start.row > 0) meter.say(`going on behind row ${start.row}`);
  const signal = interruption();
  const begin = performance.now();
  const end = await importRows(source, start, { options, remote, files, meter, signal }).finally(() => meter.end());
  if (!signal.aborted && files.progress !== null) await removeProgress(files.progress);
  await tell(end, files, options, { seconds: (performance.now() - begin) / 1000, isComplete: !signal.aborted });
}

/** Aborted by the first signal; the second ends the process at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  const second = nextSignal().then(() => {
    controller.abort();
    return nextSignal();
  });
  void second.then(() => process.exit(EXIT_STATUS.interrupted));
  return controller.signal;
}

interface Running {
  readonly options: ImportOptions;
  /** Null: nothing is sent. */
  readonly remote: Remote | null;
  readonly files: Files;
  readonly meter: ProgressBar;
  readonly signal: AbortSignal;
}

/** Answers how far it came. The progress is on disk before the first row is sent: a header that is bad leaves none. */
async function importRows(source: Source, start: Progress, running: Running): Promise<Progress> {
  const { options, files, meter, signal } = running;
  const { concurrency, skipExisting, failuresWithKeys = false } = options;
  const save = async (progress: Progress) => files.progress !== null && saveProgress(files.progress, progress);
  const failureFile = await openFailureFile(files.failures, start.failureBytes, failuresWithKeys);
  let [latest, saved] = [start, performance.now()];
  const onProgress = async (progress: Progress) => {
    latest = progress;
    meter.show(progress.row, progress.failed, progress.end, source.size);
    if (performance.now() - saved < SAVE_INTERVAL) return;
    await save(progress);
    saved = performance.now();
  };
  let begun: Promise<unknown> | undefined;
  try {
    const call = sender(running);
    const send = async (batch: Batch) => {
      begun ??= save(start);
      await begun;
      return call(batch);
    };
    await run(source, start, { send, failureFile, onProgress, concurrency, skipExisting, signal });
  } catch (error) {
    if (!isInterruption(error)) throw error;
  } finally {
    await failureFile.close();
    if (begun !== undefined) await save(latest);
  }
  return latest;
}

/** Of the wait for a server that was away; calls under way come to their end. */
function isInterruption(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function sender({ options, remote, meter, signal }: Running): (batch: Batch) => Promise<Outcome> {
  if (remote === null) return async ({ items }) => ({ imported: items.length, failures: [] });
  const { importedApiKeys } = remote;
  let isUnreachable = false;
  const onAway = (error: ConnectError) => {
    if (!isUnreachable) meter.say(`${explain(error)}: trying again`);
    isUnreachable = true;
  };
  return async ({ items }) => {
    const outcome = await send(items, { importedApiKeys, retryFor: options.retryFor, onUnreachable: onAway, signal });
    isUnreachable = false;
    return outcome;
  };
}

interface End {
  readonly seconds: number;
  readonly isComplete: boolean;
}

async function tell(
  progress: Progress,
  { failures, progress: kept }: Files,
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
    if (options.json !== true) console.error(`interrupted${kept === null ? "" : "; the same command goes on"}`);
    process.exitCode = EXIT_STATUS.interrupted;
  } else if (failed > 0) process.exitCode = EXIT_STATUS.partial;
}

function existed(count: number): string {
  return `${count} raw keys exist already and were left as they are; --no-skip-existing lists them as failures`;
}
