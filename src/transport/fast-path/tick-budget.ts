/**
 * Calls begun per turn of the event loop: about 10 ms of work. A client that has its response sends the next request at once, and libuv
 * keeps reading, up to 48 times 1024 connections, before it runs timers and sends queued statements: with a few thousand busy
 * connections a turn would take seconds. Leases are renewed by timers, and probes have deadlines.
 */
const MAX_PER_TURN = 128;

/** Starts work as it arrives, up to a limit per turn of the event loop; the rest in the next turns, in the same order. */
export class TickBudget<Work> {
  readonly #start: (work: Work) => void;
  readonly #max: number;
  #queue: Work[] = [];
  #started = 0;

  /** `start` must not throw. */
  constructor(start: (work: Work) => void, max = MAX_PER_TURN) {
    this.#start = start;
    this.#max = max;
  }

  enter(work: Work): void {
    if (this.#started >= this.#max || this.#queue.length > 0) {
      this.#queue.push(work);
      return;
    }
    if (this.#started === 0) setImmediate(this.#next);
    this.#started++;
    this.#start(work);
  }

  readonly #next = (): void => {
    const next = this.#queue.splice(0, this.#max);
    this.#started = next.length;
    if (next.length > 0) setImmediate(this.#next);
    for (const work of next) this.#start(work);
  };
}
