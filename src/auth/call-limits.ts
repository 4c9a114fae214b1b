import type { KeyholdError } from "../domain/errors.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { memoizable } from "../lib/memoize.ts";
import type { RateLimiter } from "../lib/rate-limiter.ts";
import { type AddressOf, anonymous, CallPrincipal, type GuardedCall } from "./call-principal.ts";
import { bucketOf, OwnLimitOutcomes, ownerOf } from "./own-limits.ts";
import { REJECTION_CAUSES, RejectedCredential, type RejectionCause } from "./rejected-credential.ts";

/** Receives who has made a call with a rejected credential, why it was rejected, and the key of the credential if it has one. */
export type OnRejected = (caller: Principal, reason: RejectionCause, keyId: string | null) => void;

/** The limiter of each; null: none. */
export type CallLimiters = Readonly<Record<"public" | "failures", RateLimiter | null>>;

const REASON = memoizable({ reason: "RATE_LIMITED" });

/**
 * Limits calls that need no credential by the client's address, and calls with a rejected credential by it or, if known, by the
 * caller. A valid credential is never rejected: clients behind the same proxy must not be able to lock it out.
 */
export class CallLimits {
  readonly #limiters: CallLimiters;
  readonly #outcomes: OwnLimitOutcomes;
  readonly #onRejected: OnRejected;
  readonly rejections = Object.fromEntries(REJECTION_CAUSES.map((cause) => [cause, 0])) as Record<
    RejectionCause,
    number
  >;
  /** Calls already counted: a call is authorized again when its body is complete. */
  readonly #counted = new WeakSet<GuardedCall>();

  constructor(
    limiters: CallLimiters = { public: null, failures: null },
    outcomes = new OwnLimitOutcomes(),
    onRejected: OnRejected = () => {},
  ) {
    this.#limiters = limiters;
    this.#outcomes = outcomes;
    this.#onRejected = onRejected;
  }

  /** Throws `RATE_LIMITED`. */
  admitPublic(rpc: string, call: GuardedCall, addressOf: AddressOf): void {
    if (this.#limiters.public === null || this.#counted.has(call)) return;
    this.#counted.add(call);
    const error = this.#take("public", new CallPrincipal(anonymous, rpc, call, addressOf));
    if (error === null) return;
    call.log.add(REASON);
    throw error;
  }

  /** Counts, logs and records a rejected credential. Returns the error for the caller. */
  reject(error: unknown, rpc: string, call: GuardedCall, addressOf: AddressOf): unknown {
    if (!(error instanceof RejectedCredential)) return error;
    const { reason, keyId, caller } = error.rejection;
    const name = caller && callerName(caller);
    this.rejections[reason]++;
    call.log.add({
      reason,
      peer: addressOf(call) || "unknown",
      ...(name !== undefined && { caller: name }),
      ...(typeof keyId === "string" && { refused_key_id: keyId }),
    });
    const principal = new CallPrincipal(caller ?? anonymous, rpc, call, addressOf);
    this.#onRejected(principal, reason, keyId ?? null);
    return this.#take("failures", principal) ?? error;
  }

  #take(limit: keyof CallLimiters, caller: Principal): KeyholdError | null {
    const limiter = this.#limiters[limit];
    if (limiter === null) return null;
    return this.#outcomes.take({ limit, limiter, by: ownerOf(caller), name: bucketOf(caller) }, caller);
  }
}
