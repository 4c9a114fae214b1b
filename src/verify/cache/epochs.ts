import type { Stamp } from "../../domain/key-lookup.ts";
import type { KeyChange } from "../reader.ts";
import { digestName } from "../reader.ts";
import { hashOf } from "./store/hash.ts";

/** Counters, of which some keys share one: a change then evicts credentials of both. 4 MiB, used as needed. */
const BUCKETS = 2 ** 20;

/**
 * Counts the changes of keys and digests, so that a change need not find the credentials of its key, of which there may be any number: each has
 * the counts that it is current for.
 */
export class Epochs {
  readonly #counts = new Uint32Array(BUCKETS);
  /** Of changes of everything. */
  #all = 0;

  /** Returns the stamp of what is read of a key now. `name` is its id, or the digest by which it was found. */
  stampOf(keyId: string, name: string): Stamp {
    const [ofKey, ofName] = [hashOf(keyId, 0) % BUCKETS, hashOf(name, 0) % BUCKETS];
    return { ofKey, ofName, count: this.#count(ofKey, ofName) };
  }

  isCurrent({ ofKey, ofName, count }: Stamp): boolean {
    return count === this.#count(ofKey, ofName);
  }

  invalidate({ keyIds, digests }: KeyChange): void {
    for (const keyId of keyIds) this.#increment(keyId);
    for (const digest of digests) this.#increment(digestName(digest));
  }

  invalidateAll(): void {
    this.#all++;
  }

  /** Only grows, so that a change of either is noticed. */
  #count(ofKey: number, ofName: number): number {
    return (this.#all + (this.#counts[ofKey] ?? 0) + (this.#counts[ofName] ?? 0)) >>> 0;
  }

  #increment(name: string): void {
    const bucket = hashOf(name, 0) % BUCKETS;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }
}
