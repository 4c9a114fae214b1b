import type { KeySecret, SecretDigest } from "../../domain/key.ts";
import type { HashLookups, HashScheme } from "../../domain/raw-key-hash.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";

/** Recognizes raw keys of which only hashes are stored. */
export interface HashRecognition {
  /** Returns what to try; a promise if it must be read, which rejects if it cannot be. */
  lookups(): MaybePromise<HashLookups>;
  /** Returns the last known, for stale verdicts. */
  lastLookups(): HashLookups;
  /** Returns every digest under which a fast hash of the raw key may be stored; none for a scheme with slow hashes. */
  fastDigests(rawKey: string, scheme: HashScheme): readonly SecretDigest[];
  /** Returns every digest of the first bytes of the raw key; none if it is shorter. */
  prefixDigests(rawKey: string, length: number): readonly SecretDigest[];
  /**
   * Returns whether a secret with a slow hash is that of the raw key, which this source has presented. Takes up to seconds, beside the event loop,
   * unless it was found out before; rejects with `OVERLOADED` if too many wait.
   */
  matches(rawKey: string, scheme: HashScheme, secret: KeySecret, source: string): Promise<boolean>;
}

/** Returns the same with the last known lookups, for stale verdicts: nothing is read. */
export function withLastLookups(hashes: HashRecognition): HashRecognition {
  return {
    lookups: () => hashes.lastLookups(),
    lastLookups: () => hashes.lastLookups(),
    fastDigests: (rawKey, scheme) => hashes.fastDigests(rawKey, scheme),
    prefixDigests: (rawKey, length) => hashes.prefixDigests(rawKey, length),
    matches: (...presented) => hashes.matches(...presented),
  };
}
