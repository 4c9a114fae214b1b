import { hash } from "node:crypto";

/** Hashes of a tile (C2SP tlog-tiles). */
export const TILE_WIDTH = 256;

export const HASH_SIZE = 32;

/** The root hash of the empty tree (RFC 6962 §2.1). */
const EMPTY_ROOT = sha256(new Uint8Array());

export function sha256(data: Uint8Array): Buffer {
  return hash("sha256", data, "buffer");
}

/** Returns the hash of a leaf (RFC 6962 §2.1). */
export function leafHash(entry: Uint8Array): Buffer {
  return sha256(Buffer.concat([Uint8Array.of(0), entry]));
}

function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.concat([Uint8Array.of(1), left, right]));
}

/** Returns the largest power of two below `size`, at which a tree of more than one leaf is split (RFC 6962 §2.1). */
export function splitOf(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}

/** Returns the hash of the tree over these nodes from `start` to `end`, exclusive. All but the last must be of complete subtrees of one height. */
export function hashOf(nodes: readonly Uint8Array[], start = 0, end = nodes.length): Uint8Array {
  if (end - start < 2) return nodes[start] ?? EMPTY_ROOT;
  const middle = start + splitOf(end - start);
  return nodeHash(hashOf(nodes, start, middle), hashOf(nodes, middle, end));
}

/** A position in the tiles: `level` 0 are the leaves, and a hash of the next level covers a complete tile. */
export interface TilePosition {
  readonly level: number;
  readonly index: number;
}

/** A tile, or its beginning. */
export interface Tile extends TilePosition {
  readonly hashes: readonly Uint8Array[];
}

/** Returns the number of hashes that a level has in a tree of this size. */
export function hashesAt(level: number, size: number): number {
  return Math.floor(size / TILE_WIDTH ** level);
}

/** Returns the incomplete tiles of a tree, one for each level that is not empty. The tree grows from them. */
export function edgeOf(size: number): (TilePosition & { readonly width: number })[] {
  const edge = [];
  for (let level = 0, count = size; count > 0; level++, count = hashesAt(level, size))
    edge.push({ level, index: Math.floor(count / TILE_WIDTH), width: count % TILE_WIDTH });
  return edge;
}

/** A growing tree, of which it keeps the incomplete tiles only. */
export class TreeEdge {
  /** By level. */
  readonly #hashes: Uint8Array[][];
  readonly #onHash: (position: TilePosition, hash: Uint8Array) => void;
  #size: number;

  /** `tiles`: the content of `edgeOf(size)`. `onHash` receives each further hash, with the tile to which it belongs. */
  constructor(
    size: number,
    tiles: readonly (readonly Uint8Array[])[],
    onHash: (position: TilePosition, hash: Uint8Array) => void = () => {},
  ) {
    this.#size = size;
    this.#hashes = tiles.map((hashes) => [...hashes]);
    this.#onHash = onHash;
  }

  get size(): number {
    return this.#size;
  }

  append(leaf: Uint8Array): void {
    this.#add(0, leaf);
    this.#size++;
  }

  root(): Uint8Array {
    let right: Uint8Array | undefined;
    for (const hashes of this.#hashes) {
      const nodes = right === undefined ? hashes : [...hashes, right];
      if (nodes.length > 0) right = hashOf(nodes);
    }
    return right ?? EMPTY_ROOT;
  }

  /** Called before the size grows. */
  #add(level: number, hash: Uint8Array): void {
    const position = hashesAt(level, this.#size + 1) - 1;
    this.#onHash({ level, index: Math.floor(position / TILE_WIDTH) }, hash);
    const tile = [...(this.#hashes[level] ?? []), hash];
    this.#hashes[level] = tile.length < TILE_WIDTH ? tile : [];
    if (tile.length === TILE_WIDTH) this.#add(level + 1, hashOf(tile));
  }
}
