/**
 * Calls at the most that are begun in one turn of the event loop: some 10 ms of work. A client that has its answer sends the next
 * request at once, and libuv goes on reading, up to 48 times 1024 connections, before it looks at timers, at what is to be sent to
 * the database, and at what else the turn has to end with: with a few thousand busy connections a turn would take seconds. A lease
 * is renewed by a timer, and a probe has a deadline.
 */
const MAX_BEGUN = 128;

/** Begins work as it comes, up to a bound in each turn of the event loop; the rest in the next ones, in the same order. */
export class Turns<Work> {
  readonly #begin: (work: Work) => void;
  readonly #max: number;
  #waiting: Work[] = [];
  #begun = 0;

  /** `begin` must not throw. */
  constructor(begin: (work: Work) => void, max = MAX_BEGUN) {
    this.#begin = begin;
    this.#max = max;
  }

  enter(work: Work): void {
    if (this.#begun >= this.#max || this.#waiting.length > 0) {
      this.#waiting.push(work);
      return;
    }
    if (this.#begun === 0) setImmediate(this.#next);
    this.#begun++;
    this.#begin(work);
  }

  readonly #next = (): void => {
    const next = this.#waiting.splice(0, this.#max);
    this.#begun = next.length;
    if (next.length > 0) setImmediate(this.#next);
    for (const work of next) this.#begin(work);
  };
}
