import type { HashLookups } from "../../domain/raw-key-hash.ts";
import type { KeyRing } from "../../domain/server-keys.ts";
import { fastDigests, lookupPrefixDigests } from "../../hashing/digest.ts";
import type { SlowHashes } from "../../hashing/slow/slow-hashes.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import type { HashRecognition } from "./recognition.ts";

export interface RecognitionOptions {
  /** The ring "secret-digest". */
  readonly ring: KeyRing;
  /** Returns the schemes and prefixes in use. A scheme that has not changed is best the same object: what is derived from it is memoized. */
  readonly lookups: () => MaybePromise<HashLookups>;
  /** Returns the last known, for stale verdicts. */
  readonly lastLookups: () => HashLookups;
  readonly slow: Pick<SlowHashes, "matches">;
}

/** Returns the recognition of raw keys by the hashes in use. */
export function createHashRecognition({ ring, lookups, lastLookups, slow }: RecognitionOptions): HashRecognition {
  return {
    lookups,
    lastLookups,
    fastDigests: (rawKey, scheme) => fastDigests(rawKey, scheme, ring),
    prefixDigests: (rawKey, length) => {
      const bytes = rawKey.isWellFormed() ? Buffer.from(rawKey) : Buffer.alloc(0);
      return bytes.length < length ? [] : lookupPrefixDigests(bytes.subarray(0, length), ring);
    },
    matches: slow.matches,
  };
}
