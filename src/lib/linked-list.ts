/** An item of at most one `LinkedList` at a time. Only the list sets its links. */
export interface Linked<T> {
  older: T | undefined;
  newer: T | undefined;
}

/**
 * A doubly linked list in insertion order, for short-lived items. A `Set` that every call passes through retains them until a full garbage
 * collection: when it grows, V8 leaves behind the old table, which references the new one.
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

  /** Removes an item, which must be in the list. */
  remove(item: T): void {
    const { older, newer } = item;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    item.older = undefined;
    item.newer = undefined;
  }

  /** Iterates from the oldest item. */
  *[Symbol.iterator](): Generator<T> {
    for (let item = this.#oldest; item !== undefined; item = item.newer) yield item;
  }
}
