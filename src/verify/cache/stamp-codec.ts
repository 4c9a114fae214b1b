import type { Stamp } from "../../domain/key-lookup.ts";
import { BUCKETS } from "./epochs.ts";

/** Bits of the number of a bucket. Two words have the number of the actor in the rest of their bits, so that an entry does not grow by it. */
const BUCKET_BITS = Math.log2(BUCKETS);
const ACTOR_BITS = 32 - BUCKET_BITS;
const BUCKET = BUCKETS - 1;

/** Returns a stamp as three words of 32 bits. */
export function packStamp({ count, ofKey, ofName, ofActor }: Stamp): [count: number, ofKey: number, ofName: number] {
  return [count, (ofKey | (ofActor << BUCKET_BITS)) >>> 0, (ofName | ((ofActor >>> ACTOR_BITS) << BUCKET_BITS)) >>> 0];
}

export function unpackStamp(count: number, first: number, second: number): Stamp {
  const ofActor = (first >>> BUCKET_BITS) | ((second >>> BUCKET_BITS) << ACTOR_BITS);
  return { count, ofKey: first & BUCKET, ofName: second & BUCKET, ofActor };
}
