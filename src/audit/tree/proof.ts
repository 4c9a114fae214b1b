import { KeyholdError } from "../../domain/errors.ts";
import { splitHashes } from "./entry.ts";
import { hashOf, splitOf, TILE_WIDTH } from "./merkle.ts";
import type { TreeStore } from "./tree.ts";

/** Levels of a binary tree in a tile. */
const TILE_HEIGHT = Math.log2(TILE_WIDTH);

/** Makes proofs (RFC 6962 §2.1.1 and §2.1.2) from tiles, each of which it reads once. Sizes must be at most that of the tree. */
export class Prover {
  readonly #store: Pick<TreeStore, "tile">;
  readonly #tiles = new Map<string, Promise<Uint8Array[]>>();

  constructor(store: Pick<TreeStore, "tile">) {
    this.#store = store;
  }

  /** Returns the proof that a tree of `size` has the entry `seq`. */
  inclusion(seq: number, size: number): Promise<Uint8Array[]> {
    requireWithin(seq + 1, size);
    return this.#path(seq, 0, size);
  }

  /** Returns the proof that a tree of `size` begins with the one of `first`. */
  consistency(first: number, size: number): Promise<Uint8Array[]> {
    requireWithin(first, size);
    return first === 0 ? Promise.resolve([]) : this.#subproof(first, 0, size, true);
  }

  async #path(seq: number, start: number, end: number): Promise<Uint8Array[]> {
    if (end - start === 1) return [];
    const middle = start + splitOf(end - start);
    if (seq < middle) return [...(await this.#path(seq, start, middle)), await this.#hash(middle, end)];
    return [...(await this.#path(seq, middle, end)), await this.#hash(start, middle)];
  }

  /** `isKnown`: the first tree begins where this range does, so that the verifier has the hash of its part. */
  async #subproof(first: number, start: number, end: number, isKnown: boolean): Promise<Uint8Array[]> {
    if (first === end) return isKnown ? [] : [await this.#hash(start, end)];
    const middle = start + splitOf(end - start);
    if (first <= middle)
      return [...(await this.#subproof(first, start, middle, isKnown)), await this.#hash(middle, end)];
    return [...(await this.#subproof(first, middle, end, false)), await this.#hash(start, middle)];
  }

  /** Returns the hash of the entries from `start` to `end`, exclusive: a range that occurs in a proof. */
  async #hash(start: number, end: number): Promise<Uint8Array> {
    const size = end - start;
    const height = Math.log2(size);
    if (Number.isInteger(height)) return this.#subtree(height, start / size);
    const middle = start + splitOf(size);
    return hashOf(await Promise.all([this.#hash(start, middle), this.#hash(middle, end)]));
  }

  /** Returns the hash of a complete subtree. */
  async #subtree(height: number, place: number): Promise<Uint8Array> {
    const level = Math.floor(height / TILE_HEIGHT);
    const count = 2 ** (height % TILE_HEIGHT);
    const first = place * count;
    const hashes = await this.#tile(level, Math.floor(first / TILE_WIDTH));
    const offset = first % TILE_WIDTH;
    if (hashes.length < offset + count)
      throw new Error(`the tile ${level}/${Math.floor(first / TILE_WIDTH)} lacks hashes`);
    return hashOf(hashes, offset, offset + count);
  }

  #tile(level: number, index: number): Promise<Uint8Array[]> {
    const name = `${level}/${index}`;
    const reading = this.#tiles.get(name) ?? this.#store.tile({ level, index }).then(splitHashes);
    this.#tiles.set(name, reading);
    return reading;
  }
}

/** @throws `AUDIT_SEQ_OUT_OF_RANGE` */
export function requireWithin(first: number, size: number): void {
  if (first > size) throw new KeyholdError("AUDIT_SEQ_OUT_OF_RANGE", `the tree has ${size} events, not ${first}`);
}
