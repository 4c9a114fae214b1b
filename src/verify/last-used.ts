import type { Clock } from "../lib/clock.ts";

/** Stores that these keys were used in this minute; never moves a time back. */
export type StoreLastUsed = (keyIds: readonly string[], minute: Date) => Promise<void>;

export type LastUsed = ReturnType<typeof createLastUsed>;

const MINUTE = 60_000;

/** Maximum number of keys tracked; others are dropped: `last_used_time` is informational and not worth more memory. */
const MAX_KEYS = 30_000;

/** Tracks which keys were used, so that verification itself writes nothing. */
export function createLastUsed(touch: StoreLastUsed, clock: Clock) {
  let noted = new Map<string, number>();
  /** Keys already written in this minute: a burst of uses makes one write. */
  const written = new Map<string, number>();
  const thisMinute = () => Math.floor(clock.now() / MINUTE);
  return {
    note: (keyId: string): void => {
      const minute = thisMinute();
      const last = noted.get(keyId) ?? written.get(keyId);
      if ((last !== undefined && last >= minute) || noted.size >= MAX_KEYS) return;
      noted.set(keyId, minute);
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
        recordWritten(written, batch, thisMinute());
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

/** Updates in place: copying large maps every few seconds would grow the heap. */
function recordWritten(written: Map<string, number>, batch: ReadonlyMap<string, number>, minute: number): void {
  for (const [keyId, last] of written) if (last < minute) written.delete(keyId);
  for (const [keyId, last] of batch) {
    if (last >= minute && (written.size < MAX_KEYS || written.has(keyId))) written.set(keyId, last);
  }
}
