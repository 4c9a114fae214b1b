import type { Monotonic } from "../lib/clock.ts";
import { ClockCache } from "../lib/clock-cache.ts";
import type { Verdict, VerifiedKey } from "./verdict.ts";

/** A verdict, and the milliseconds for which it may be used, from when it was asked for. */
export interface Answer {
  readonly verdict: Verdict<VerifiedKey>;
  readonly lifetimeMs: number;
}

interface Entry {
  readonly answer: Promise<Answer>;
  /** By `monotonic`. */
  until: number;
}

export interface VerdictCacheOptions {
  /** Milliseconds for which one that is still to come may be waited for by others. */
  readonly maxAgeMs: number;
  readonly size: number;
  readonly monotonic: Monotonic;
}

/**
 * Verdicts by the SHA-256 of the credential, which is kept nowhere. The age of a verdict counts from when it was asked for: whatever
 * was revoked before that is known to it. So who asks while another's question is under way joins it only if the verdict may be that
 * old; else a key could be accepted after the call that revoked it has returned.
 */
export class VerdictCache {
  readonly #ask: (credential: string) => Promise<Answer>;
  readonly #options: VerdictCacheOptions;
  readonly #entries: ClockCache<Entry>;

  /** `ask` must not reject. */
  constructor(ask: (credential: string) => Promise<Answer>, options: VerdictCacheOptions) {
    this.#ask = ask;
    this.#options = options;
    this.#entries = new ClockCache(Math.max(1, options.size));
  }

  async verify(credential: string): Promise<Verdict<VerifiedKey>> {
    const key = await digest(credential);
    const entry = this.#entries.get(key);
    const isFresh = entry !== undefined && this.#options.monotonic() < entry.until;
    return (await (isFresh ? entry.answer : this.#askAnew(key, credential))).verdict;
  }

  async #askAnew(key: string, credential: string): Promise<Answer> {
    const begin = this.#options.monotonic();
    const entry = { answer: this.#ask(credential), until: begin + this.#options.maxAgeMs };
    if (this.#options.size > 0) this.#entries.set(key, entry);
    const answer = await entry.answer;
    entry.until = begin + answer.lifetimeMs;
    if (answer.lifetimeMs <= 0 && this.#entries.get(key) === entry) this.#entries.delete(key);
    return answer;
  }
}

/** Of Web Crypto, so that it runs where Node does not; 32 characters of one byte each. */
async function digest(credential: string): Promise<string> {
  const bytes = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(credential));
  return String.fromCharCode(...new Uint8Array(bytes));
}
