import type { Monotonic } from "../lib/clock.ts";
import { ClockCache } from "../lib/clock-cache.ts";
import type { Verdict, VerifiedKey } from "./verdict.ts";

/** A verdict and how long it may be used, in milliseconds since the start of the call. */
export interface Answer {
  readonly verdict: Verdict<VerifiedKey>;
  readonly lifetimeMs: number;
}

interface Entry {
  readonly answer: Promise<Answer>;
  /** In terms of `monotonic`. */
  until: number;
}

export interface VerdictCacheOptions {
  /** How long other callers may join a call in flight, in milliseconds. */
  readonly maxAgeMs: number;
  readonly size: number;
  readonly monotonic: Monotonic;
}

/**
 * Caches verdicts by the SHA-256 of the credential, which itself is not stored. The age of a verdict counts from the start of its call: it
 * reflects every revocation that had returned by then. A caller joins a call in flight only if the verdict may be that old; otherwise a
 * credential could be accepted after the call that revoked it has returned.
 */
export class VerdictCache {
  readonly #call: (credential: string) => Promise<Answer>;
  readonly #options: VerdictCacheOptions;
  readonly #entries: ClockCache<Entry>;

  /** `call` must not reject. */
  constructor(call: (credential: string) => Promise<Answer>, options: VerdictCacheOptions) {
    this.#call = call;
    this.#options = options;
    this.#entries = new ClockCache(Math.max(1, options.size));
  }

  async verify(credential: string): Promise<Verdict<VerifiedKey>> {
    const key = await digest(credential);
    const entry = this.#entries.get(key);
    const isFresh = entry !== undefined && this.#options.monotonic() < entry.until;
    return (await (isFresh ? entry.answer : this.#refresh(key, credential))).verdict;
  }

  async #refresh(key: string, credential: string): Promise<Answer> {
    const started = this.#options.monotonic();
    const entry = { answer: this.#call(credential), until: started + this.#options.maxAgeMs };
    if (this.#options.size > 0) this.#entries.set(key, entry);
    const answer = await entry.answer;
    entry.until = started + answer.lifetimeMs;
    if (answer.lifetimeMs <= 0 && this.#entries.get(key) === entry) this.#entries.delete(key);
    return answer;
  }
}

/** Returns the SHA-256 as 32 one-byte characters. Web Crypto runs outside Node too. */
async function digest(credential: string): Promise<string> {
  const bytes = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(credential));
  return String.fromCharCode(...new Uint8Array(bytes));
}
