/** What can be an item of a `LinkedList`, of one at a time. Only the list sets its neighbours. */
export interface Linked<T> {
  older: T | undefined;
  newer: T | undefined;
}

/**
 * Items in the order in which they were added, for items that stay for a moment. A `Set` through which every call passes keeps the
 * calls alive until the next full garbage collection: V8 leaves its old table behind when it grows, and that points to the new one.
 */
export class LinkedList<T extends Linked<T>> {
  #oldest: T | undefined;
  #newest: T | undefined;

  get oldest(): T | undefined {
    return this.#oldest;
  }

  add(item: T): void {
    item.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  /** Removes an item that the list has. */
  remove(item: T): void {
    const { older, newer } = item;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    item.older = undefined;
    item.newer = undefined;
  }

  /** Oldest first. */
  *[Symbol.iterator](): Generator<T> {
    for (let item = this.#oldest; item !== undefined; item = item.newer) yield item;
  }
}
