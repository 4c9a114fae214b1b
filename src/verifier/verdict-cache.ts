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

interface VerdictCacheOptions {
  /** How long other callers may join a call in flight, in milliseconds. */
  readonly maxAgeMs: number;
  readonly size: number;
  readonly monotonic: Monotonic;
}

type Call = (credential: string, presentation: Presentation) => Promise<Answer>;

/**
 * Returns the call with a cache of verdicts by the SHA-256 of the credential, which itself is not stored, and where it is presented. The age
 * of a verdict counts from the start of its call: it reflects every revocation that had returned by then. A caller joins a call in flight
 * only if the verdict may be that old; otherwise a credential could be accepted after the call that revoked it has returned.
 */
export function cachingVerdicts(call: Call, { maxAgeMs, size, monotonic }: VerdictCacheOptions) {
  const entries = new ClockCache<Entry>(Math.max(1, size));
  const forget = (key: string, entry: Entry) => {
    if (entries.get(key) === entry) entries.delete(key);
  };
  const refresh = async (key: string, credential: string, presentation: Presentation): Promise<Answer> => {
    const started = monotonic();
    const entry = { answer: call(credential, presentation), until: started + maxAgeMs };
    if (size > 0) entries.set(key, entry);
    const answer = await entry.answer.catch((error: unknown) => {
      forget(key, entry);
      throw error;
    });
    entry.until = started + answer.lifetimeMs;
    if (answer.lifetimeMs <= 0) forget(key, entry);
    return answer;
  };
  return async (credential: string, presentation: Presentation = {}): Promise<Verdict<VerifiedKey>> => {
    const key = await nameOf(credential, presentation);
    const entry = entries.get(key);
    if (entry !== undefined && monotonic() < entry.until) {
      const { verdict } = await entry.answer;
      if (!isLimited(verdict)) return verdict;
    }
    return (await refresh(key, credential, presentation)).verdict;
  };
}

/** Returns whether every verification of the credential has to be charged. */
export function isLimited(verdict: Verdict<VerifiedKey>): boolean {
  const { limits = [] } = verdict.ok ? verdict.credential : verdict;
  return limits.length > 0;
}

/**
 * Returns the SHA-256 of the credential and its presentation as 32 one-byte characters: a verdict for one address, audience or list of
 * scopes says nothing about another. JSON keeps the values apart. Web Crypto runs outside Node too.
 */
async function nameOf(
  credential: string,
  { clientIp, audience, requiredScopes = [], charges = [] }: Presentation,
): Promise<string> {
  const text = JSON.stringify([credential, clientIp ?? null, audience ?? null, requiredScopes, charges]);
  const bytes = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return String.fromCharCode(...new Uint8Array(bytes));
}
