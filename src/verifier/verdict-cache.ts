import type { Monotonic } from "../lib/clock.ts";
import { ClockCache } from "../lib/clock-cache.ts";
import type { Presentation, Verdict, VerifiedKey } from "./verdict.ts";

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

type Call = (credential: string, presentation: Presentation) => Promise<Answer>;

/**
 * Caches verdicts by the SHA-256 of the credential, which itself is not stored, and where it is presented. The age of a verdict counts from the start of its call: it
 * reflects every revocation that had returned by then. A caller joins a call in flight only if the verdict may be that old; otherwise a
 * credential could be accepted after the call that revoked it has returned.
 */
export class VerdictCache {
  readonly #call: Call;
  readonly #options: VerdictCacheOptions;
  readonly #entries: ClockCache<Entry>;

  constructor(call: Call, options: VerdictCacheOptions) {
    this.#call = call;
    this.#options = options;
    this.#entries = new ClockCache(Math.max(1, options.size));
  }

  async verify(credential: string, presentation: Presentation): Promise<Verdict<VerifiedKey>> {
    const key = await nameOf(credential, presentation);
    const entry = this.#entries.get(key);
    const isFresh = entry !== undefined && this.#options.monotonic() < entry.until;
    return (await (isFresh ? entry.answer : this.#refresh(key, credential, presentation))).verdict;
  }

  async #refresh(key: string, credential: string, presentation: Presentation): Promise<Answer> {
    const started = this.#options.monotonic();
    const entry = { answer: this.#call(credential, presentation), until: started + this.#options.maxAgeMs };
    if (this.#options.size > 0) this.#entries.set(key, entry);
    const answer = await entry.answer.catch((error: unknown) => {
      this.#forget(key, entry);
      throw error;
    });
    entry.until = started + answer.lifetimeMs;
    if (answer.lifetimeMs <= 0) this.#forget(key, entry);
    return answer;
  }

  #forget(key: string, entry: Entry): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}

/**
 * Returns the SHA-256 of the credential and its presentation as 32 one-byte characters: a verdict for one address, audience or list of
 * scopes says nothing about another. JSON keeps the values apart. Web Crypto runs outside Node too.
 */
async function nameOf(credential: string, { clientIp, audience, requiredScopes = [] }: Presentation): Promise<string> {
  const text = JSON.stringify([credential, clientIp ?? null, audience ?? null, requiredScopes]);
  const bytes = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return String.fromCharCode(...new Uint8Array(bytes));
}
