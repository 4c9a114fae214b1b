import { type Monotonic, systemMonotonic } from "../../lib/clock.ts";

/**
 * Calls begun per tick of the event loop: about 10 ms of work. A client that has its response sends the next request at once, and libuv
 * keeps reading, up to 48 times 1024 connections, before it runs timers and sends queued statements: with a few thousand busy
 * connections a tick would take seconds. Leases are renewed by timers, and probes have deadlines.
 */
const MAX_PER_TICK = 128;

/** Milliseconds after which a tick begins no further call: batches of 1,000 credentials take 10 ms each. */
const MAX_TICK_TIME = 10;

/** Starts work as it arrives, up to a number and a time per tick of the event loop; the rest in the next ticks, in the same order. */
export class TickBudget<Work> {
  readonly #start: (work: Work) => void;
  readonly #max: number;
  readonly #now: Monotonic;
  #queue: Work[] = [];
  #started = 0;
  /** When the tick is over, by `#now`. */
  #end = 0;

  /** `start` must not throw. */
  constructor(start: (work: Work) => void, max = MAX_PER_TICK, now: Monotonic = systemMonotonic) {
    this.#start = start;
    this.#max = max;
    this.#now = now;
  }

  enter(work: Work): void {
    if (this.#queue.length > 0 || !this.#hasRoom()) {
      this.#queue.push(work);
      return;
    }
    if (this.#started === 0) this.#begin();
    this.#started++;
    this.#start(work);
  }

  #hasRoom(): boolean {
    return this.#started < this.#max && (this.#started === 0 || this.#now() < this.#end);
  }

  #begin(): void {
    setImmediate(this.#next);
    this.#end = this.#now() + MAX_TICK_TIME;
  }

  readonly #next = (): void => {
    this.#started = 0;
    if (this.#queue.length === 0) return;
    this.#begin();
    const queue = this.#queue;
    // What the work below enters comes after all that waits.
    for (; this.#started < queue.length && this.#hasRoom(); this.#started++) this.#start(queue[this.#started] as Work);
    queue.splice(0, this.#started);
  };
}
