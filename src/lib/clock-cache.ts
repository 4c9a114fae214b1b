interface Entry<V> {
  readonly key: string;
  readonly value: V;
  readonly slot: number;
  used: boolean;
}

/** Limits the second chances given per eviction, so that `set` takes constant time. */
const MAX_SECOND_CHANCES = 8;

/**
 * A bounded map with the CLOCK eviction policy: an entry that was used since the hand last passed gets a second chance. Insertion order of
 * a `Map` (LRU) would be slow: V8 walks over every entry deleted from the front.
 */
export class ClockCache<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #slots: (Entry<V> | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #maxEntries: number;
  #hand = 0;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.used = true;
    return entry.value;
  }

  set(key: string, value: V): void {
    const slot = this.#entries.get(key)?.slot ?? this.#freeSlot();
    const entry = { key, value, slot, used: false };
    this.#slots[slot] = entry;
    this.#entries.set(key, entry);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#slots[entry.slot] = undefined;
    this.#free.push(entry.slot);
  }

  clear(): void {
    this.#entries.clear();
    this.#slots.length = 0;
    this.#free.length = 0;
    this.#hand = 0;
  }

  #freeSlot(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    return this.#slots.length < this.#maxEntries ? this.#slots.length : this.#evict();
  }

  #evict(): number {
    for (let chances = 0; chances < MAX_SECOND_CHANCES; chances++) {
      const entry = this.#slots[this.#hand];
      if (!entry?.used) break;
      entry.used = false;
      this.#hand = (this.#hand + 1) % this.#maxEntries;
    }
    const slot = this.#hand;
    this.#entries.delete(this.#slots[slot]?.key ?? "");
    this.#hand = (slot + 1) % this.#maxEntries;
    return slot;
  }
}
