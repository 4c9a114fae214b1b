import type { Verdict } from "../domain/verdict.ts";
import { memoizable } from "../lib/memoize.ts";
import type { CallLog } from "./rpc.ts";

const REASON = memoizable({ reason: "RATE_LIMITED" });

/** Throws `RATE_LIMITED` if Keyhold's own limit denies the verification: it is no verdict on the credential. */
export function requireAdmitted(verdict: Verdict, log: CallLog): void {
  if (verdict.valid || verdict.denial === undefined) return;
  log.add(REASON);
  throw verdict.denial;
}
