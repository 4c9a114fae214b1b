/** No slot. */
export const NO_SLOT = -1;

/**
 * Maps hashes to positions: open addressing with linear probing over a typed array of pairs (hash, position + 1). It has its full size from the
 * start, so it never pauses to grow; untouched pages use no memory.
 */
export class ByteIndex {
  #slots: Uint32Array;
  readonly #mask: number;
  #size = 0;

  /** `capacity` is the maximum number of entries. At least a third of the slots stay empty. */
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

  /** Returns the first slot with this hash; hashes may collide, so more may follow. */
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

  /** Records that an entry moved. */
  move(hash: number, from: number, to: number): void {
    this.#put(this.#slotOf(hash, from), hash, to + 1);
  }

  remove(hash: number, place: number): void {
    this.#size--;
    this.#fill(this.#slotOf(hash, place));
  }

  /** Allocates a new array, which uses no memory until written; zeroing the old one would touch all of it. */
  clear(): void {
    if (this.#size === 0) return;
    this.#slots = new Uint32Array(this.#slots.length);
    this.#size = 0;
  }

  #slotOf(hash: number, place: number): number {
    let slot = this.first(hash);
    while (slot !== NO_SLOT && this.placeAt(slot) !== place) slot = this.next(slot, hash);
    if (slot === NO_SLOT) throw new RangeError("cache index entry not found");
    return slot;
  }

  #seek(hash: number, start: number): number {
    for (let slot = start; ; slot = (slot + 1) & this.#mask) {
      if (this.#at(slot * 2 + 1) === 0) return NO_SLOT;
      if (this.#at(slot * 2) === hash) return slot;
    }
  }

  /** Moves back displaced entries after this slot, so that no probe ends too early. */
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
