/** No slot, or no more of them. */
export const NO_SLOT = -1;

/**
 * Which place holds what hashes so: open addressing with linear probing over one typed array of pairs (hash, place + 1). It has
 * its full size from the start and so never pauses to grow; pages that nothing was written to take no memory yet.
 */
export class ByteIndex {
  #slots: Uint32Array;
  readonly #mask: number;
  #size = 0;

  /** For this many entries at the most: a third of the slots or more stay empty. */
  constructor(capacity: number) {
    const count = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2) * 1.5));
    this.#slots = new Uint32Array(count * 2);
    this.#mask = count - 1;
  }

  get size(): number {
    return this.#size;
  }

  get byteLength(): number {
    return this.#slots.byteLength;
  }

  /** The first slot with this hash; more may follow, for hashes collide. */
  first(hash: number): number {
    return this.#seek(hash, hash & this.#mask);
  }

  next(slot: number, hash: number): number {
    return this.#seek(hash, (slot + 1) & this.#mask);
  }

  placeAt(slot: number): number {
    return this.#at(slot * 2 + 1) - 1;
  }

  add(hash: number, place: number): void {
    let slot = hash & this.#mask;
    while (this.#at(slot * 2 + 1) !== 0) slot = (slot + 1) & this.#mask;
    this.#put(slot, hash, place + 1);
    this.#size++;
  }

  /** Says that what was at one place is at another. */
  move(hash: number, from: number, to: number): void {
    this.#put(this.#slotOf(hash, from), hash, to + 1);
  }

  remove(hash: number, place: number): void {
    this.#size--;
    this.#fill(this.#slotOf(hash, place));
  }

  /** New slots take no memory until they are written to; to write zeros over the old ones would take all of it, and some time. */
  clear(): void {
    if (this.#size === 0) return;
    this.#slots = new Uint32Array(this.#slots.length);
    this.#size = 0;
  }

  #slotOf(hash: number, place: number): number {
    let slot = this.first(hash);
    while (slot !== NO_SLOT && this.placeAt(slot) !== place) slot = this.next(slot, hash);
    if (slot === NO_SLOT) throw new RangeError("the index has no such entry");
    return slot;
  }

  #seek(hash: number, start: number): number {
    for (let slot = start; ; slot = (slot + 1) & this.#mask) {
      if (this.#at(slot * 2 + 1) === 0) return NO_SLOT;
      if (this.#at(slot * 2) === hash) return slot;
    }
  }

  /** Moves back what had to give way to the entry of this slot, so that no search ends before it should. */
  #fill(gap: number): void {
    for (let slot = (gap + 1) & this.#mask; this.#at(slot * 2 + 1) !== 0; slot = (slot + 1) & this.#mask) {
      const home = this.#at(slot * 2) & this.#mask;
      if (((slot - home) & this.#mask) < ((slot - gap) & this.#mask)) continue;
      this.#put(gap, this.#at(slot * 2), this.#at(slot * 2 + 1));
      gap = slot;
    }
    this.#put(gap, 0, 0);
  }

  #at(position: number): number {
    return this.#slots[position] ?? 0;
  }

  #put(slot: number, hash: number, place: number): void {
    this.#slots[slot * 2] = hash;
    this.#slots[slot * 2 + 1] = place;
  }
}
