import type { VerifiableKey } from "../../domain/key.ts";
import type { Stamp } from "../../domain/key-lookup.ts";
import type { KeyChange } from "../reader.ts";
import { digestName } from "../reader.ts";
import { hashOf } from "./store/hash.ts";

/** Counters, of which some keys share one: a change then evicts credentials of both. 4 MiB, used as needed. */
export const BUCKETS = 2 ** 20;

/**
 * Counts the changes of keys, digests and actors, so that a change need not find the credentials that it concerns, of which there may be any number: each has
 * the counts that it is current for.
 */
export class Epochs {
  readonly #counts = new Uint32Array(BUCKETS);
  /** Of changes of everything. */
  #all = 0;

  /** Returns the stamp of what is read of a key now. `name` is its id, or the digest by which it was found. */
  stampOf({ keyId, actorId }: Pick<VerifiableKey, "keyId" | "actorId">, name: string): Stamp {
    const [ofKey, ofName, ofActor] = [bucketOf(keyId), bucketOf(name), bucketOf(actorId)];
    return { ofKey, ofName, ofActor, count: this.#count(ofKey, ofName, ofActor) };
  }

  isCurrent({ ofKey, ofName, ofActor, count }: Stamp): boolean {
    return count === this.#count(ofKey, ofName, ofActor);
  }

  invalidate({ keyIds, digests, actorIds = [] }: KeyChange): void {
    for (const keyId of keyIds) this.#increment(keyId);
    for (const actorId of actorIds) this.#increment(actorId);
    for (const digest of digests) this.#increment(digestName(digest));
  }

  invalidateAll(): void {
    this.#all++;
  }

  /** Only grows, so that a change of any is noticed. */
  #count(ofKey: number, ofName: number, ofActor: number): number {
    const counts = this.#counts;
    return (this.#all + (counts[ofKey] ?? 0) + (counts[ofName] ?? 0) + (counts[ofActor] ?? 0)) >>> 0;
  }

  #increment(name: string): void {
    const bucket = bucketOf(name);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }
}

function bucketOf(name: string): number {
  return hashOf(name, 0) % BUCKETS;
}
