import { KeyholdError } from "../domain/errors.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { memoizable } from "../lib/memoize.ts";
import { networkOf } from "../lib/network.ts";
import type { RateLimiter } from "../lib/rate-limiter.ts";
import { type AddressOf, anonymous, CallPrincipal, type GuardedCall } from "./call-principal.ts";
import { REJECTION_CAUSES, RejectedCredential, type RejectionCause } from "./rejected-credential.ts";

type LimitName = "public" | "failures";

/** Receives who has made a call with a rejected credential, why it was rejected, and the key of the credential if it has one. */
export type OnRejected = (caller: Principal, reason: RejectionCause, keyId: string | null) => void;

/** The limiter of each; null: none. */
export type Limiters = Readonly<Record<LimitName, RateLimiter | null>>;

/** Memoizable, because it is thrown under load. A token is available within a second. */
export const RATE_LIMITED = memoizable(
  new KeyholdError("RATE_LIMITED", "too many calls of this kind from this address or caller; retry after 1 s"),
);

const REASON = memoizable({ reason: "RATE_LIMITED" });

/**
 * Limits calls that need no credential by the client's address, and calls with a rejected credential by it or, if known, by the
 * caller. A valid credential is never rejected: clients behind the same proxy must not be able to lock it out.
 */
export class CallLimits {
  readonly #limiters: Limiters;
  readonly #onRejected: OnRejected;
  /** Calls that were rejected with RATE_LIMITED. */
  readonly limited: Record<LimitName, number> = { public: 0, failures: 0 };
  readonly rejections = Object.fromEntries(REJECTION_CAUSES.map((cause) => [cause, 0])) as Record<
    RejectionCause,
    number
  >;
  /** Calls already counted: a call is authorized again when its body is complete. */
  readonly #counted = new WeakSet<GuardedCall>();

  constructor(limiters: Limiters = { public: null, failures: null }, onRejected: OnRejected = () => {}) {
    this.#limiters = limiters;
    this.#onRejected = onRejected;
  }

  /** Throws `RATE_LIMITED`. */
  admitPublic(call: GuardedCall, addressOf: AddressOf): void {
    const { public: limiter } = this.#limiters;
    if (limiter === null || this.#counted.has(call)) return;
    this.#counted.add(call);
    if (limiter.take(networkOf(addressOf(call)))) return;
    this.limited.public++;
    call.log.add(REASON);
    throw RATE_LIMITED;
  }

  /** Counts, logs and records a rejected credential. Returns the error for the caller. */
  reject(error: unknown, rpc: string, call: GuardedCall, addressOf: AddressOf): unknown {
    if (!(error instanceof RejectedCredential)) return error;
    const { reason, keyId, caller } = error.rejection;
    const name = caller && callerName(caller);
    const address = addressOf(call);
    this.rejections[reason]++;
    call.log.add({
      reason,
      peer: address || "unknown",
      ...(name !== undefined && { caller: name }),
      ...(typeof keyId === "string" && { refused_key_id: keyId }),
    });
    this.#onRejected(new CallPrincipal(caller ?? anonymous, rpc, call, addressOf), reason, keyId ?? null);
    const { failures: limiter } = this.#limiters;
    if (limiter === null || limiter.take(name ?? networkOf(address))) return error;
    this.limited.failures++;
    return RATE_LIMITED;
  }
}
