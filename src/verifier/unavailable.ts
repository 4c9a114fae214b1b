import { rootCause } from "../client/unreachable.ts";
import { type Monotonic, systemMonotonic } from "../lib/clock.ts";
import type { RejectedCredential } from "./verdict.ts";

/** Passed on when a request is answered 503, as its credential could not be verified. The message names the cause. */
export class VerificationUnavailable extends Error {
  override readonly name = "VerificationUnavailable";

  constructor({ message, cause }: Pick<RejectedCredential, "message" | "cause">) {
    super(describe(message, cause), { cause });
  }
}

/** Milliseconds. An outage makes an error for each request. */
const WARNING_INTERVAL = 10_000;

/** Returns a listener that emits a warning of the process, which Node writes to standard error, and is then silent for ten seconds. */
export function warnAtIntervals(monotonic: Monotonic = systemMonotonic): (error: Error) => void {
  let silentUntil = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (monotonic() < silentUntil) return;
    silentUntil = monotonic() + WARNING_INTERVAL;
    const text = `a request was answered 503: ${message} (set onError to receive every such error)`;
    process.emitWarning(text, { type: "KeyholdWarning" });
  };
}

function describe(message: string, cause: unknown): string {
  if (!(cause instanceof Error)) return message;
  const { text } = rootCause(cause);
  return [message, cause.message, text].filter((part, at, all) => !all[at - 1]?.includes(part)).join(": ");
}
