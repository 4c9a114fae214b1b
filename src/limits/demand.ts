/** Counts costs in slots of time, to expect those of the next one. */
export class Demand {
  readonly #slotLength: number;
  #slot = 0;
  #count = 0;
  #before = 0;

  /** The length of a slot in milliseconds. */
  constructor(slotLength: number) {
    this.#slotLength = slotLength;
  }

  /** Counts a cost that is presented at `now`, monotonic milliseconds. */
  add(cost: number, now: number): void {
    const slot = Math.floor(now / this.#slotLength);
    if (slot !== this.#slot) {
      this.#before = slot === this.#slot + 1 ? this.#count : 0;
      [this.#slot, this.#count] = [slot, 0];
    }
    this.#count += cost;
  }

  /** Returns the cost that is expected in a slot. */
  expected(now: number): number {
    const slots = Math.floor(now / this.#slotLength) - this.#slot;
    return slots === 0 ? Math.max(this.#count, this.#before) : slots === 1 ? this.#count : 0;
  }
}
