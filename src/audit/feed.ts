import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import type { AuditEvent } from "./event.ts";
import { type EventFilter, matches } from "./filter.ts";
import type { AuditStore } from "./log.ts";

export interface AuditFeedOptions {
  readonly store: Pick<AuditStore, "sequence" | "bounds" | "read">;
  readonly monotonic: Monotonic;
  /** Called when a watcher begins: `advance` must be called soon. */
  readonly onWatch: () => void;
  /** Milliseconds. */
  readonly heartbeat?: number;
  /** Events that are kept for all watchers together. */
  readonly capacity?: number;
}

/** An event, or a heartbeat without one. */
export interface Watched {
  readonly event: AuditEvent | null;
  /** The stream continues here after a reconnection. */
  readonly nextSeq: number;
}

const HEARTBEAT = 15_000;
const CAPACITY = 4_096;

/** Events read from the database at once. */
const PAGE = 500;

/**
 * The end of the audit log, in memory for all watchers of this node. Each watcher has a position and takes events at its own pace: those before the
 * kept ones come from the database, until the watcher has caught up once. A watcher that falls behind the kept ones then is too slow.
 */
export class AuditFeed {
  readonly #store: AuditFeedOptions["store"];
  readonly #monotonic: Monotonic;
  readonly #onWatch: () => void;
  readonly #heartbeat: number;
  readonly #capacity: number;
  /** The newest events, without gaps. Empty while nobody watches. */
  #kept: AuditEvent[] = [];
  /** The `seq` behind the kept events; null: unknown. */
  #end: number | null = null;
  #watchers = 0;
  readonly #waiting = new Set<() => void>();

  constructor({ store, monotonic, onWatch, heartbeat = HEARTBEAT, capacity = CAPACITY }: AuditFeedOptions) {
    this.#store = store;
    this.#monotonic = monotonic;
    this.#onWatch = onWatch;
    this.#heartbeat = heartbeat;
    this.#capacity = capacity;
  }

  /** Returns the number of streams. */
  get watchers(): number {
    return this.#watchers;
  }

  /** Returns whether a watcher waits for events up to this size of the log. */
  isBehind(size: number): boolean {
    return this.#watchers > 0 && (this.#end ?? 0) < size;
  }

  /** Reads what was recorded since, if anybody watches. Calls must not overlap. */
  async advance(): Promise<void> {
    if (this.#watchers === 0) {
      [this.#kept, this.#end] = [[], null];
      return;
    }
    if (this.#end === null) {
      this.#end = (await this.#store.bounds()).size;
      this.#wake();
    }
    for (;;) {
      const events = await this.#store.read(this.#end, PAGE);
      const last = events.at(-1);
      if (last === undefined) return;
      this.#kept.push(...events);
      this.#kept.splice(0, this.#kept.length - this.#capacity);
      this.#end = last.seq + 1;
      this.#wake();
    }
  }

  /**
   * Yields the events that match from `startSeq` on, or those that are recorded from now on if it is null, and heartbeats. Ends when the signal
   * aborts.
   *
   * @throws `AUDIT_SEQ_OUT_OF_RANGE` if the log does not have the first event any more, or lacks events before it; `WATCH_TOO_SLOW`
   */
  async *watch(startSeq: number | null, filter: EventFilter, signal: AbortSignal): AsyncGenerator<Watched> {
    this.#watchers++;
    this.#onWatch();
    try {
      let next = await this.#start(startSeq);
      let hasCaughtUp = false;
      // The first heartbeat tells the client where the stream begins.
      let beat = this.#monotonic();
      while (!signal.aborted) {
        const kept = this.#keptFrom(next);
        if (kept === null && hasCaughtUp) throw tooSlow();
        hasCaughtUp = kept !== null;
        const events = kept ?? (await this.#read(next));
        for (const event of events) {
          next = event.seq + 1;
          if (!matches(filter, event)) continue;
          yield { event, nextSeq: next };
          beat = this.#monotonic() + this.#heartbeat;
          if (signal.aborted) return;
        }
        if (events.length === 0) await this.#woken(Math.max(beat - this.#monotonic(), 0), signal);
        if (signal.aborted || this.#monotonic() < beat) continue;
        yield { event: null, nextSeq: next };
        beat = this.#monotonic() + this.#heartbeat;
      }
    } finally {
      this.#watchers--;
    }
  }

  async #start(startSeq: number | null): Promise<number> {
    await this.#store.sequence();
    const { first, size } = await this.#store.bounds();
    const start = startSeq ?? size;
    if (start < first) throw outOfRange(`the first event in the audit log is ${first}`);
    if (start > size)
      throw outOfRange(`the audit log ends before event ${size}: it may have been restored from a backup`);
    return start;
  }

  /** Returns the kept events from `seq` on; null if they do not begin there. */
  #keptFrom(seq: number): readonly AuditEvent[] | null {
    if (this.#end === null) return null;
    const first = this.#end - this.#kept.length;
    return seq < first ? null : this.#kept.slice(seq - first);
  }

  async #read(seq: number): Promise<readonly AuditEvent[]> {
    const events = await this.#store.read(seq, PAGE);
    const [first] = events;
    if (first !== undefined && first.seq > seq) throw outOfRange(`the first event in the audit log is ${first.seq}`);
    return events;
  }

  /** Resolves when there are events, after this number of milliseconds, or when the signal aborts. */
  #woken(timeout: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, timeout);
      signal.addEventListener("abort", end);
      this.#waiting.add(end);
    });
  }

  #wake(): void {
    for (const resume of this.#waiting) resume();
  }
}

function outOfRange(message: string): KeyholdError {
  return new KeyholdError("AUDIT_SEQ_OUT_OF_RANGE", message);
}

function tooSlow(): KeyholdError {
  return new KeyholdError(
    "WATCH_TOO_SLOW",
    "the client receives events too slowly; watch again with the last resume_token",
  );
}
