import { rootCause } from "../client/unreachable.ts";
import { type Monotonic, systemMonotonic } from "../lib/clock.ts";
import type { RejectedCredential } from "./verdict.ts";

/** The reason why a request was answered 503: its credential could not be verified. The message names the cause. */
export class VerificationUnavailable extends Error {
  override readonly name = "VerificationUnavailable";

  constructor({ message, cause }: Pick<RejectedCredential, "message" | "cause">) {
    super(describe(message, cause), { cause });
  }
}

/** Milliseconds between warnings: during an outage every request fails. */
const WARNING_INTERVAL = 10_000;

/** Returns a listener that emits a process warning, which Node writes to standard error, at most every ten seconds. */
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
