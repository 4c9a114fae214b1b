import type { Clock } from "../lib/clock.ts";

/** Stores that these keys were used in this minute; never moves a time back. */
export type StoreLastUsed = (keyIds: readonly string[], minute: Date) => Promise<void>;

export type LastUsed = ReturnType<typeof createLastUsed>;

const MINUTE = 60_000;

/** Returns the minute of a time in milliseconds, since the epoch: the precision of `last_used_time`. */
export function minuteOf(time: number): number {
  return Math.floor(time / MINUTE);
}

/** Maximum number of keys that wait to be written; the uses of others wait for the next verification. */
const MAX_KEYS = 30_000;

/** Tracks which keys were used, so that verification itself writes nothing. */
export function createLastUsed(touch: StoreLastUsed, clock: Clock) {
  let noted = new Map<string, number>();
  return {
    /** Notes a use in this minute. Returns whether it will be written. */
    note: (keyId: string): boolean => {
      const minute = minuteOf(clock.now());
      const last = noted.get(keyId);
      if (last === undefined && noted.size >= MAX_KEYS) return false;
      if (last === undefined || last < minute) noted.set(keyId, minute);
      return true;
    },
    /** Number of keys to be written. */
    get size() {
      return noted.size;
    },
    /** Writes the keys noted since the last call. On failure they are kept for the next call. */
    flush: async (): Promise<void> => {
      const batch = noted;
      noted = new Map();
      try {
        for (const [minute, keyIds] of Map.groupBy(batch.keys(), (keyId) => batch.get(keyId) ?? 0)) {
          for (const part of partsOf(keyIds)) await touch(part, new Date(minute * MINUTE));
        }
      } catch (error) {
        for (const [keyId, minute] of batch) if (!noted.has(keyId)) noted.set(keyId, minute);
        throw error;
      }
    },
  };
}

/** Keys per write. Meanwhile none of them can be changed, and a revocation must not wait for thousands of others. */
const MAX_TOUCHED = 200;

function* partsOf(keyIds: readonly string[]): Generator<readonly string[]> {
  for (let start = 0; start < keyIds.length; start += MAX_TOUCHED) yield keyIds.slice(start, start + MAX_TOUCHED);
}
