import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { backoffDelay } from "../lib/backoff.ts";
import { systemMonotonic } from "../lib/clock.ts";
import { sleep } from "../lib/sleep.ts";
import { errorReason } from "./errors.ts";
import { hasRequestId } from "./request-ids.ts";
import { withUnary } from "./transport.ts";

/**
 * Retry policy. Idempotent calls are retried on UNAVAILABLE and on connection loss (AIP-194): those with an `idempotency_level` in the proto
 * (read, verify, update, delete) or a `request_id` (create, import, bulk changes). Any call is retried when the server rejected it as OVERLOADED or
 * RATE_LIMITED, before execution. Retries end with the call's timeout.
 */
export interface RetryOptions {
  /** Maximum number of attempts including the first; 4 by default. */
  readonly maxAttempts?: number;
  /** Upper bound of the first backoff in milliseconds, doubled for each further attempt; 100 by default. */
  readonly initialBackoffMs?: number;
  /** Upper bound of every backoff in milliseconds, excluding a `Retry-After`; 2 s by default. */
  readonly maxBackoffMs?: number;
}

/** Reasons of calls that the server rejected before execution. */
const NOT_EXECUTED: ReadonlySet<string | undefined> = new Set(["OVERLOADED", "RATE_LIMITED"]);

/** Adds retries to a transport. `timeoutMs` is the default timeout of a call; 0 for none. */
export function withRetries(transport: Transport, timeoutMs: number, options: RetryOptions = {}): Transport {
  const { maxAttempts = 4 } = options;
  return withUnary(transport, async (method, signal, ownTimeoutMs, header, input, values) => {
    const limit = ownTimeoutMs ?? timeoutMs;
    const deadline = limit <= 0 ? Number.POSITIVE_INFINITY : systemMonotonic() + limit;
    for (let attempt = 1; ; attempt++) {
      try {
        return await transport.unary(method, signal, remaining(deadline), header, input, values);
      } catch (reason) {
        const error = ConnectError.from(reason);
        const backoff = backoffAfter(error, attempt, options);
        const isLast = attempt >= maxAttempts || backoff >= deadline - systemMonotonic();
        if (isLast || !isRetryable(method, error)) throw error;
        await sleep(backoff, signal).catch((abort) => {
          throw ConnectError.from(abort, Code.Canceled);
        });
      }
    }
  });
}

/** Returns whole milliseconds, as the protocols require; 0 means no timeout. */
function remaining(deadline: number): number {
  return deadline === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.ceil(deadline - systemMonotonic()));
}

function isRetryable({ idempotency, input }: DescMethod, error: ConnectError): boolean {
  if (NOT_EXECUTED.has(errorReason(error))) return true;
  const isIdempotent = idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN || hasRequestId(input);
  return isIdempotent && error.code === Code.Unavailable;
}

/** Returns milliseconds: exponential backoff with jitter, after any `Retry-After`. */
function backoffAfter(error: ConnectError, attempt: number, options: RetryOptions): number {
  const { initialBackoffMs: first = 100, maxBackoffMs: max = 2_000 } = options;
  return retryAfter(error) + backoffDelay(attempt, { first, max });
}

/** Returns `Retry-After` (RFC 9110 §10.2.3) in milliseconds; 0 if absent, a date, or above six digits. */
export function retryAfter({ metadata }: ConnectError): number {
  const text = metadata.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0;
}
