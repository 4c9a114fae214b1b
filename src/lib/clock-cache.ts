interface Entry<V> {
  readonly key: string;
  readonly value: V;
  readonly place: number;
  used: boolean;
}

/** More than these are not spared for one new entry, so that none takes long. */
const MAX_SPARED = 8;

/**
 * A bounded map. When it is full a hand goes round its places for one to give to the new entry, and passes by what was used
 * since it came by last (CLOCK). A `Map` alone, by its order, would get slow: it walks over all that was deleted from its front.
 */
export class ClockCache<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #places: (Entry<V> | undefined)[] = [];
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
    const place = this.#entries.get(key)?.place ?? this.#freePlace();
    const entry = { key, value, place, used: false };
    this.#places[place] = entry;
    this.#entries.set(key, entry);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#places[entry.place] = undefined;
    this.#free.push(entry.place);
  }

  clear(): void {
    this.#entries.clear();
    this.#places.length = 0;
    this.#free.length = 0;
    this.#hand = 0;
  }

  #freePlace(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    return this.#places.length < this.#maxEntries ? this.#places.length : this.#evict();
  }

  #evict(): number {
    for (let spared = 0; spared < MAX_SPARED && this.#places[this.#hand]?.used === true; spared++) this.#spare();
    const place = this.#hand;
    this.#entries.delete(this.#places[place]?.key ?? "");
    this.#hand = (place + 1) % this.#maxEntries;
    return place;
  }

  #spare(): void {
    const entry = this.#places[this.#hand];
    if (entry !== undefined) entry.used = false;
    this.#hand = (this.#hand + 1) % this.#maxEntries;
  }
}
