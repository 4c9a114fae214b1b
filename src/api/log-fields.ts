import { type Verdict, verificationErrorOf } from "../domain/verdict.ts";
import { memoize } from "../lib/memoize.ts";
import type { CallLog } from "./rpc.ts";

/** Log fields of a verdict: the key, if the credential was identified, and the rejection reason. */
export const logFieldsOf = memoize((verdict: Verdict): Readonly<Record<string, string>> => {
  const { keyId } = verdict;
  return {
    ...(keyId !== null && { key_id: keyId }),
    verdict: verdict.valid ? "VALID" : verificationErrorOf(verdict.reason),
    ...(verdict.isStale && { stale: "true" }),
  };
});

/** Logs the verdict that is the result of a call. */
export function logVerdict(log: CallLog, verdict: Verdict): void {
  log.add(logFieldsOf(verdict));
  if (verdict.valid) log.accepted();
}

/** Logs how many credentials of a batch are rejected, if any is. */
export function logVerdicts(log: CallLog, verdicts: readonly Verdict[]): void {
  let rejected = 0;
  for (const { valid } of verdicts) if (!valid) rejected++;
  if (rejected === 0) log.accepted();
  else log.add({ rejected: String(rejected) });
}

/** Bounds a line so that it is written atomically (pipe(7), PIPE_BUF). */
const MAX_KEY_IDS = 80;

/** Logs the keys that a call has changed: a single one in the log entry of the call, several in separate lines. */
export function logKeys(log: CallLog, keyIds: readonly string[]): void {
  const [only, ...others] = keyIds;
  if (only !== undefined && others.length === 0) log.add({ key_id: only });
  else noteKeys(log, keyIds);
}

/** Logs keys that a call has changed in separate lines, for a call that changes keys in several steps. */
export function noteKeys(log: CallLog, keyIds: readonly string[]): void {
  for (let start = 0; start < keyIds.length; start += MAX_KEY_IDS) {
    log.note("keys changed", { key_ids: keyIds.slice(start, start + MAX_KEY_IDS) });
  }
}
