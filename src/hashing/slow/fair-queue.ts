/**
 * A bounded queue that serves its groups in turn, and of each the oldest item. A full queue drops the youngest item of the largest group, so that
 * one group cannot keep the others out.
 */
export class FairQueue<T extends { readonly since: number }> {
  readonly #maxSize: number;
  /** The first one is served next. None is empty; the items of each are ordered by age. */
  readonly #groups = new Map<string, T[]>();

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get size(): number {
    return this.#groups.values().reduce((total, { length }) => total + length, 0);
  }

  /** Adds an item. Returns what there is no room for: another item, this one, or nothing. Takes time linear in the size. */
  add(group: string, item: T): T | undefined {
    const items = this.#groups.get(group) ?? [];
    items.splice(items.findLastIndex(({ since }) => since <= item.since) + 1, 0, item);
    this.#groups.set(group, items);
    if (this.size <= this.#maxSize) return undefined;
    // Of groups of equal size this one: a swap would be no fairer.
    const largest = this.#groups.values().reduce((most, one) => (one.length > most.length ? one : most), items);
    const removed = largest.pop();
    if (items.length === 0) this.#groups.delete(group);
    return removed;
  }

  /** Removes and returns the oldest item of the group whose turn it is. */
  shift(): T | undefined {
    for (const [group, items] of this.#groups) {
      const item = items.shift();
      this.#groups.delete(group);
      if (items.length > 0) this.#groups.set(group, items);
      return item;
    }
    return undefined;
  }
}
