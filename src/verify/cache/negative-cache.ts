import { digestName } from "../cache-keys.ts";
import type { KeyChange } from "../reader.ts";

/**
 * Look-ups that found no key, bounded apart, so that a flood of credentials of nobody drives out nothing but each other. One
 * has a name for each digest that its raw key may be stored under, and goes when a key comes under any of them.
 */
export class NegativeCache {
  /** Each name with all the names of its look-up, oldest first. */
  readonly #names = new Map<string, readonly string[]>();
  readonly #maxNames: number;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  get size(): number {
    return this.#names.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(names: readonly string[]): void {
    for (const name of names) this.#names.set(name, names);
    for (const oldest of this.#names.keys()) {
      if (this.#names.size <= this.#maxNames) return;
      this.delete(oldest);
    }
  }

  /** By any of its names. */
  delete(name: string): void {
    for (const other of this.#names.get(name) ?? []) this.#names.delete(other);
  }

  /** An import may tell of a thousand digests, and mostly there is nothing here. */
  invalidate({ keyIds, digests }: KeyChange): void {
    if (this.#names.size === 0) return;
    for (const digest of digests) this.delete(digestName(digest));
    for (const keyId of keyIds) this.delete(keyId);
  }

  clear(): void {
    this.#names.clear();
  }
}
