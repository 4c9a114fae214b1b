import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { systemMonotonic } from "../lib/clock.ts";
import { errorReason } from "./errors.ts";
import { overUnary } from "./transport.ts";

/**
 * A call that ends UNAVAILABLE is made again if a repeat does no harm: what reads, verifies, creates or imports (these have a
 * `request_id`). A call of any kind is made again when the server was OVERLOADED or the call RATE_LIMITED, for then it began nothing. All within the time that
 * the call has.
 */
export interface RetryOptions {
  /** Attempts at the most, the first one included; 4 if absent. */
  readonly maxAttempts?: number;
  /** Milliseconds that the first pause may take; each pause after it may take twice as long. 100 if absent. */
  readonly initialBackoffMs?: number;
  /** Milliseconds that no pause exceeds, but for a `Retry-After` of the server. 2 s if absent. */
  readonly maxBackoffMs?: number;
}

/** Beside those that have no side effects: what `docs/api.md` says of a repeat is what its caller wants. */
const REPEATABLE: ReadonlySet<DescMethod> = new Set<DescMethod>([
  ApiKeysService.method.verifyApiKey,
  ApiKeysService.method.batchVerifyApiKeys,
  IssuedApiKeysService.method.createIssuedApiKey,
  ImportedApiKeysService.method.createImportedApiKey,
  ImportedApiKeysService.method.batchCreateImportedApiKeys,
]);

/** The reasons of errors of calls that were not begun. */
const NOTHING_BEGUN: ReadonlySet<string | undefined> = new Set(["OVERLOADED", "RATE_LIMITED"]);

/** `timeoutMs` is for calls that bring none of their own; 0 is no limit. */
export function withRetries(transport: Transport, timeoutMs: number, options: RetryOptions = {}): Transport {
  const { maxAttempts = 4 } = options;
  return overUnary(transport, async (method, signal, ownTimeoutMs, header, input, values) => {
    const deadline = deadlineAfter(ownTimeoutMs ?? timeoutMs);
    for (let attempt = 1; ; attempt++) {
      try {
        return await transport.unary(method, signal, remaining(deadline), header, input, values);
      } catch (reason) {
        const error = ConnectError.from(reason);
        const pause = pauseAfter(error, attempt, options);
        const isLast = attempt >= maxAttempts || pause >= deadline - systemMonotonic();
        if (isLast || !mayRepeat(method, error)) throw error;
        await sleep(pause, signal);
      }
    }
  });
}

function deadlineAfter(timeoutMs: number): number {
  return timeoutMs <= 0 ? Number.POSITIVE_INFINITY : systemMonotonic() + timeoutMs;
}

/** Whole milliseconds, as the protocols have it; to Connect's transports 0 is no limit. */
function remaining(deadline: number): number {
  return deadline === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.ceil(deadline - systemMonotonic()));
}

function mayRepeat(method: DescMethod, error: ConnectError): boolean {
  if (NOTHING_BEGUN.has(errorReason(error))) return true;
  if (error.code !== Code.Unavailable) return false;
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS || REPEATABLE.has(method);
}

/** Milliseconds: a random part of the backoff, so that clients that failed together do not come back together. */
function pauseAfter(error: ConnectError, attempt: number, options: RetryOptions): number {
  const { initialBackoffMs = 100, maxBackoffMs = 2_000 } = options;
  const backoff = Math.min(maxBackoffMs, initialBackoffMs * 2 ** (attempt - 1));
  return retryAfter(error) + Math.random() * backoff;
}

/** Milliseconds by the seconds of `Retry-After` (RFC 9110 §10.2.3), as many as a timer can take; 0 without, or where it is a date. */
function retryAfter({ metadata }: ConnectError): number {
  const text = metadata.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0;
}

/** Rejects when the caller gives up. */
function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(ConnectError.from(signal?.reason, Code.Canceled));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    }, milliseconds);
    if (signal?.aborted) giveUp();
    else signal?.addEventListener("abort", giveUp, { once: true });
  });
}
