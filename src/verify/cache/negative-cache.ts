import type { KeyChange } from "../reader.ts";
import { digestName } from "../reader.ts";

/**
 * Caches lookups that found no key, with a limit of their own, so that a flood of unknown credentials evicts nothing else. A lookup has a
 * name for each digest of its raw key and is evicted when a key is stored under any of them.
 */
export class NegativeCache {
  /** Each name with all names of its lookup, oldest first. */
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

  /** Evicts by any of its names. */
  delete(name: string): void {
    for (const other of this.#names.get(name) ?? []) this.#names.delete(other);
  }

  /** Returns early if empty, the usual case: an import may have a thousand digests. */
  invalidate({ keyIds, digests }: KeyChange): void {
    if (this.#names.size === 0) return;
    for (const digest of digests) this.delete(digestName(digest));
    for (const keyId of keyIds) this.delete(keyId);
  }

  clear(): void {
    this.#names.clear();
  }
}
