import { randomUUID } from "node:crypto";
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
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { writeMessage } from "../rest-json.ts";
import { withRetries } from "../retry.ts";
import { interruption } from "../signals.ts";
import { askYesNo } from "../yes-no.ts";
import { REASONS } from "./manage.ts";

export interface BulkOptions extends RemoteOptions {
  readonly filter: string;
  readonly reason?: string;
  readonly validateOnly?: true;
  readonly expectedCount?: number;
  readonly requestId?: string;
  readonly yes?: true;
  /** Milliseconds. */
  readonly retryFor: number;
}

export interface BulkRevokeOptions extends Omit<BulkOptions, "reason"> {
  readonly reason?: keyof typeof REASONS;
  readonly description?: string;
}

type Progress = BulkRevokeApiKeysResponse | BulkDisableApiKeysResponse;

interface Request {
  readonly validateOnly?: boolean;
  readonly expectedCount: number | undefined;
  readonly requestId?: string;
}

type Call = (request: Request, options?: CallOptions) => Promise<Progress>;

/** What the two commands do not share. */
interface Verb {
  readonly command: string;
  /** Asked before, with the number of keys. */
  question(count: number): string;
  call(remote: Remote): Call;
}

export function bulkRevoke(options: BulkRevokeOptions): Promise<void> {
  const { filter, description } = options;
  const reason = options.reason && REASONS[options.reason];
  const fields = { filter, reason, revocationDescription: description };
  return run(options, {
    command: "bulk-revoke",
    question: (count) => `Revoke ${count} keys permanently?`,
    call:
      ({ apiKeys }) =>
      (request, call) =>
        apiKeys.bulkRevokeApiKeys({ ...fields, ...request }, call),
  });
}

export function bulkDisable(options: BulkOptions): Promise<void> {
  const { filter, reason } = options;
  const fields = { filter, reason };
  return run(options, {
    command: "bulk-disable",
    question: (count) => `Disable ${count} keys?`,
    call:
      ({ apiKeys }) =>
      (request, call) =>
        apiKeys.bulkDisableApiKeys({ ...fields, ...request }, call),
  });
}

async function run(options: BulkOptions, verb: Verb): Promise<void> {
  const call = verb.call(await openRemote(options));
  const { expectedCount, validateOnly } = options;
  if (validateOnly === true) return writeMessage(await call({ validateOnly, expectedCount }), options);
  const confirmed = options.yes === true ? expectedCount : await confirm(call, expectedCount, verb);
  if (confirmed === null) return;
  await complete(call, confirmed, options, verb);
}

/** Returns the number of keys that the user has agreed to; null: the user has not. */
async function confirm(call: Call, expectedCount: number | undefined, verb: Verb): Promise<number | null> {
  if (!process.stdin.isTTY) throw invalidArgument("--yes", "is required if stdin is not a terminal");
  const { matchedCount } = await call({ validateOnly: true, expectedCount });
  if (await askYesNo(verb.question(matchedCount))) return matchedCount;
  note("nothing was changed");
  process.exitCode = EXIT_STATUS.failed;
  return null;
}

/** Calls until the operation is done. An interruption ends the call in flight; what it has begun is stored. */
async function complete(
  call: Call,
  expectedCount: number | undefined,
  options: BulkOptions,
  { command }: Verb,
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
