/**
 * A bounded queue that serves its groups in turn, and each first in, first out. What is added to a full queue takes the place of the newest item of
 * the largest group, so that one group cannot keep the others out.
 */
export class FairQueue<T> {
  readonly #maxSize: number;
  /** The first one is served next. None is empty. */
  readonly #groups = new Map<string, T[]>();
  #size = 0;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item. Returns what there is no room for: another item, this one, or nothing. Takes time linear in the number of groups. */
  add(group: string, item: T): T | undefined {
    const items = this.#groups.get(group) ?? [];
    let removed: T | undefined;
    if (this.#size >= this.#maxSize) {
      const largest = this.#largest();
      // A swap between groups of equal size would be no fairer.
      if (largest.length <= items.length + 1) return item;
      removed = largest.pop();
      this.#size--;
    }
    items.push(item);
    this.#groups.set(group, items);
    this.#size++;
    return removed;
  }

  /** Removes and returns the first item of the group whose turn it is. */
  shift(): T | undefined {
    for (const [group, items] of this.#groups) {
      const item = items.shift();
      this.#groups.delete(group);
      if (items.length > 0) this.#groups.set(group, items);
      this.#size--;
      return item;
    }
    return undefined;
  }

  #largest(): T[] {
    let largest: T[] = [];
    for (const items of this.#groups.values()) if (items.length > largest.length) largest = items;
    return largest;
  }
}
