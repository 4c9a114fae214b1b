import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { CallOptions } from "@connectrpc/connect";
import type {
  BulkDisableApiKeysResponse,
  BulkRevokeApiKeysResponse,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { note } from "../output.ts";
import { createProgressBar } from "../progress-bar.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeMessage } from "../rest-json.ts";
import { withRetries } from "../retry.ts";
import { interruption } from "../signals.ts";
import { REASONS } from "./manage.ts";

interface BulkOptions extends RemoteOptions {
  readonly filter: string;
  readonly validateOnly?: true;
  readonly expectedCount?: number;
  readonly requestId?: string;
  readonly yes?: true;
  /** Milliseconds. */
  readonly retryFor: number;
}

type Call = (
  request: { validateOnly?: boolean; expectedCount: number | undefined; requestId?: string },
  options?: CallOptions,
) => Promise<BulkRevokeApiKeysResponse | BulkDisableApiKeysResponse>;

type Revocation = { readonly reason?: keyof typeof REASONS; readonly description?: string };

export async function bulkRevoke(options: BulkOptions & Revocation): Promise<void> {
  const { apiKeys } = await openRemote(options);
  const { filter, reason, description } = options;
  const fields = { filter, reason: reason && REASONS[reason], revocationDescription: description };
  const call: Call = (request, callOptions) => apiKeys.bulkRevokeApiKeys({ ...fields, ...request }, callOptions);
  await run("bulk-revoke", call, options, (count) => `Revoke ${count} keys permanently?`);
}

export async function bulkDisable(options: BulkOptions & { readonly reason?: string }): Promise<void> {
  const { apiKeys } = await openRemote(options);
  const { filter, reason } = options;
  const call: Call = (request, callOptions) => apiKeys.bulkDisableApiKeys({ filter, reason, ...request }, callOptions);
  await run("bulk-disable", call, options, (count) => `Disable ${count} keys?`);
}

/** Changes the keys once the user has answered the question, unless `--yes` answers it. */
async function run(
  command: string,
  call: Call,
  options: BulkOptions,
  question: (count: number) => string,
): Promise<void> {
  const { expectedCount, validateOnly } = options;
  if (validateOnly === true) return writeMessage(await call({ validateOnly, expectedCount }), options);
  if (options.yes === true) return complete(command, call, expectedCount, options);
  if (!process.stdin.isTTY) throw invalidArgument("--yes", "is required if stdin is not a terminal");
  const { matchedCount } = await call({ validateOnly: true, expectedCount });
  if (await askYesNo(question(matchedCount))) return complete(command, call, matchedCount, options);
  note("nothing was changed");
  process.exitCode = EXIT_STATUS.failed;
}

/** Asks a question on the terminal. Returns whether the answer is `y` or `yes`; Ctrl+C, Ctrl+D and the end of input are no answer. */
async function askYesNo(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // If stderr is not a terminal, Node leaves the question pending at the end of input, and the process would exit with 0.
  const closed = once(lines, "close").then(() => null);
  const answer = await Promise.race([lines.question(`${question} [y/N] `).catch(() => null), closed]);
  lines.close();
  if (answer === null) note("");
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

/** Calls until the operation is done. An interruption ends the call in flight; what it has begun is stored. */
async function complete(
  command: string,
  call: Call,
  expectedCount: number | undefined,
  options: BulkOptions,
): Promise<void> {
  const requestId = options.requestId ?? randomUUID();
  const say = (text: string) => {
    if (options.json !== true) note(text);
  };
  const remedy = `to continue, repeat the command with --request-id ${requestId}`;
  say(`keyhold keys ${command}: if it is interrupted, repeat it with --request-id ${requestId}`);
  const signal = interruption();
  // The rates of an operation that continues count from its first response.
  const start = options.requestId === undefined ? { items: 0, done: 0 } : undefined;
  const progressBar = options.json === true ? null : createProgressBar(process.stderr, "keys", start);
  try {
    for (;;) {
      const progress = await withRetries(() => call({ expectedCount, requestId }, { signal }), {
        ...{ retryFor: options.retryFor, signal },
        onUnreachable: (error) => say(`${explain(error)}; retrying`),
      });
      if (progress.done) {
        progressBar?.end();
        return await writeMessage(progress, options);
      }
      const { changedCount, matchedCount: total } = progress;
      progressBar?.show({ items: changedCount, done: changedCount, total, failed: 0 });
    }
  } catch (error) {
    progressBar?.end();
    if (!signal.aborted) {
      say(remedy);
      throw error;
    }
    say(`interrupted; ${remedy}`);
    process.exitCode = EXIT_STATUS.interrupted;
  }
}
