import { rm } from "node:fs/promises";
import type { ConnectError } from "@connectrpc/connect";
import { invalidArgument } from "../../domain/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { replaceFile } from "../../lib/whole-file.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { type HashOptions, readHashDefaults } from "../hash-options.ts";
import { boundHeapGrowth } from "../heap.ts";
import { note, writeObject } from "../output.ts";
import { createProgressBar } from "../progress-bar.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { interruption } from "../signals.ts";
import { openFailureFile } from "./failure-file.ts";
import { type ColumnMap, checkColumnMap, type RowOptions } from "./fields.ts";
import { loadProgress, newProgress, type Progress } from "./progress.ts";
import type { Row } from "./records.ts";
import { type Batch, run } from "./run.ts";
import { type Outcome, send } from "./send.ts";
import { type FormatName, openSource, type Source } from "./source.ts";

interface ImportOptions extends RemoteOptions, HashOptions {
  readonly map?: ColumnMap;
  readonly format?: FormatName;
  readonly failures?: string;
  readonly progress?: string;
  readonly dryRun?: boolean;
  readonly failuresWithKeys?: boolean;
  readonly allowWeak?: boolean;
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
  const current = await openRun(path, options);
  const { start, progressBar, signal, files } = current;
  if (start.row > 0) await progressBar?.log(`resuming after row ${start.row}`);
  const started = performance.now();
  const end = await importRows(current).finally(() => progressBar?.end());
  const seconds = Number(((performance.now() - started) / 1000).toFixed(1));
  if (!signal.aborted && files.progress !== null) await rm(files.progress, { force: true });
  await report(end, seconds, current);
}

type Run = Awaited<ReturnType<typeof openRun>>;

/** Opens what an import reads and writes. There is no server on a dry run, and no progress bar with `--json`. */
async function openRun(path: string, options: ImportOptions) {
  const { map: columns = null, adoptBeforeTime, allowWeak } = options;
  const rows: RowOptions = { columns, hash: await readHashDefaults(options), adoptBeforeTime, allowWeak };
  checkColumnMap(rows);
  const source = await openSource(path, options.format);
  const files = filesOf(source, options);
  const remote = options.dryRun === true ? null : await openRemote(options);
  const saved = files.progress === null ? undefined : await loadProgress(files.progress, source, remote?.url);
  const start = saved ?? newProgress(source, remote?.url);
  const progressBar =
    options.json === true ? null : createProgressBar(process.stderr, "rows", { items: start.row, done: start.end });
  /** The number of rows whose raw keys headers may not carry, and the first of them. */
  const warned = { rows: 0, lines: [] as { line: number; warnings: string[] }[] };
  return { options, rows, source, start, remote, files, progressBar, signal: interruption(), warned };
}

/** Returns the files that an import writes. No progress is saved on a dry run or from stdin. */
function filesOf({ path }: Source, { failures, progress, dryRun }: ImportOptions) {
  const files = {
    progress: path === null || dryRun === true ? null : (progress ?? `${path}.progress`),
    failures: failures ?? `${path ?? "import"}.failures.jsonl`,
  };
  if (files.failures === path) throw invalidArgument("--failures", "must differ from the imported file");
  return files;
}

const MAX_SHOWN_WARNINGS = 20;

/** Returns the final progress. It is saved before the first call, but not if the header is invalid. */
async function importRows(current: Run): Promise<Progress> {
  const { options, rows, source, start, files, progressBar, signal, warned } = current;
  const { concurrency, skipExisting, failuresWithKeys = false } = options;
  const save = async (progress: Progress) =>
    files.progress !== null && replaceFile(files.progress, `${JSON.stringify(progress)}\n`);
  const failureFile = await openFailureFile(files.failures, start.failureBytes, failuresWithKeys);
  const call = sender(current);
  let firstSave: Promise<unknown> | undefined;
  const send = async (batch: Batch) => {
    firstSave ??= save(start);
    await firstSave;
    return call(batch);
  };
  const onWarnings = ({ line }: Row, warnings: readonly string[]) => {
    if (warned.rows++ < MAX_SHOWN_WARNINGS) warned.lines.push({ line, warnings: [...warnings] });
  };
  const called = { send, failureFile, onWarnings, rows, concurrency, skipExisting, signal };
  let [latest, saved] = [start, performance.now()];
  try {
    for await (latest of run(source, start, called)) {
      const { row: items, end: done, failed } = latest;
      progressBar?.show({ items, done, total: source.size, failed });
      if (performance.now() - saved < SAVE_INTERVAL) continue;
      await save(latest);
      saved = performance.now();
    }
  } catch (error) {
    // An abort while waiting to retry; calls in flight complete.
    if (!(error instanceof Error && error.name === "AbortError")) throw error;
  } finally {
    await failureFile.close();
    if (firstSave !== undefined) await save(latest);
  }
  return latest;
}

function sender({ options, remote, progressBar, signal }: Run): (batch: Batch) => Promise<Outcome> {
  if (remote === null) return async ({ items }) => ({ imported: items.length, failures: [] });
  const { importedApiKeys } = remote;
  let isUnreachable = false;
  const onUnreachable = (error: ConnectError) => {
    if (!isUnreachable) void progressBar?.log(`${explain(error)}; retrying`);
    isUnreachable = true;
  };
  return async ({ items }) => {
    const outcome = await send(items, { importedApiKeys, retryFor: options.retryFor, onUnreachable, signal });
    isUnreachable = false;
    return outcome;
  };
}

async function report(progress: Progress, seconds: number, { options, files, warned, signal }: Run): Promise<void> {
  const { row: rows, imported, existing, failed } = progress;
  const isJson = options.json === true;
  const result: JsonObject = {
    ...(options.dryRun === true ? { rows, valid: imported, failed } : { rows, imported, existing, failed }),
    ...(failed > 0 && { failures_file: files.failures }),
    ...(warned.rows > 0 && { warned: warned.rows }),
    ...(warned.rows > 0 && isJson && { warnings: warned.lines }),
    ...{ seconds, complete: !signal.aborted },
  };
  await writeObject(result, options);
  if (signal.aborted) process.exitCode = EXIT_STATUS.interrupted;
  else if (failed > 0) process.exitCode = EXIT_STATUS.partial;
  if (isJson) return;
  for (const { line, warnings } of warned.lines) note(`line ${line}: ${warnings.join("; ")}`);
  const others = warned.rows - warned.lines.length;
  if (others > 0) note(`${others} more rows have similar warnings`);
  if (existing > 0)
    note(`${existing} raw keys already exist and were left unchanged; --no-skip-existing reports them as failures`);
  if (signal.aborted) note(`interrupted${files.progress === null ? "" : "; repeat the command to resume"}`);
}
