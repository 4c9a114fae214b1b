import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitHashes } from "../../../src/audit/tree/entry.ts";
import { edgeOf, TILE_WIDTH, TreeEdge } from "../../../src/audit/tree/merkle.ts";
import { parseTreePath, tilePath } from "../../../src/audit/tree/paths.ts";
import { Prover } from "../../../src/audit/tree/proof.ts";

/** RFC 6962 §2.1, as it is written there, for the leaf hashes of entries. */
const sha256 = (...parts: Uint8Array[]) => hash("sha256", Buffer.concat(parts), "buffer");
const leafOf = (entry: Uint8Array) => sha256(Uint8Array.of(0), entry);

function k(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

function mth(leaves: readonly Uint8Array[]): Uint8Array {
  const [first] = leaves;
  if (first === undefined) return sha256();
  if (leaves.length === 1) return first;
  const split = k(leaves.length);
  return sha256(Uint8Array.of(1), mth(leaves.slice(0, split)), mth(leaves.slice(split)));
}

function path(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const split = k(leaves.length);
  return m < split
    ? [...path(m, leaves.slice(0, split)), mth(leaves.slice(split))]
    : [...path(m - split, leaves.slice(split)), mth(leaves.slice(0, split))];
}

function subproof(m: number, leaves: readonly Uint8Array[], b: boolean): Uint8Array[] {
  if (m === leaves.length) return b ? [] : [mth(leaves)];
  const split = k(leaves.length);
  return m <= split
    ? [...subproof(m, leaves.slice(0, split), b), mth(leaves.slice(split))]
    : [...subproof(m - split, leaves.slice(split), false), mth(leaves.slice(0, split))];
}

/** Tiles in memory, which are only appended to, as in the database. */
class Tiles {
  readonly tiles = new Map<string, Uint8Array>();

  read(level: number, index: number): Uint8Array {
    return this.tiles.get(`${level}/${index}`) ?? new Uint8Array();
  }

  /** Returns the edge of the stored tree of this size. */
  edge(size: number): TreeEdge {
    const edge = edgeOf(size).map(({ level, index, width }) => splitHashes(this.read(level, index)).slice(0, width));
    return new TreeEdge(size, edge, ({ level, index }, hash) =>
      this.tiles.set(`${level}/${index}`, Buffer.concat([this.read(level, index), hash])),
    );
  }

  readonly store = { tile: async ({ level, index }: { level: number; index: number }) => this.read(level, index) };
}

const LEAVES: Uint8Array[] = [];

/** Returns the leaf hashes of the entries "0", "1" and so on. Each is computed once: trees of 70,000 are many. */
function leavesOf(size: number): Uint8Array[] {
  for (let seq = LEAVES.length; seq < size; seq++) LEAVES.push(leafOf(Buffer.from(String(seq))));
  return LEAVES.slice(0, size);
}

function treeOf(leaves: readonly Uint8Array[]): { tiles: Tiles; edge: TreeEdge } {
  const tiles = new Tiles();
  const edge = tiles.edge(0);
  for (const leaf of leaves) edge.append(leaf);
  return { tiles, edge };
}

test("a tree that grows in parts has the root of RFC 6962 after each of them", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 4 }), (parts) => {
      const leaves = leavesOf(parts.reduce((sum, part) => sum + part, 0));
      const tiles = new Tiles();
      let size = 0;
      for (const part of parts) {
        const edge = tiles.edge(size);
        for (const leaf of leaves.slice(size, size + part)) edge.append(leaf);
        size += part;
        expect(edge.size).toBe(size);
        expect(Buffer.from(edge.root())).toEqual(Buffer.from(mth(leaves.slice(0, size))));
      }
    }),
    { numRuns: 50 },
  );
});

test("proofs are those of RFC 6962", async () => {
  const sizes = fc
    .integer({ min: 1, max: 1_500 })
    .chain((total) => fc.tuple(fc.integer({ min: 1, max: total }), fc.constant(total)))
    .chain(([size, total]) => fc.tuple(fc.nat(size - 1), fc.nat(size), fc.constant(size), fc.constant(total)));
  await fc.assert(
    fc.asyncProperty(sizes, async ([seq, first, size, total]) => {
      const all = leavesOf(total);
      const leaves = all.slice(0, size);
      const prover = new Prover(treeOf(all).tiles.store);
      const hex = (hashes: readonly Uint8Array[]) => hashes.map((hash) => Buffer.from(hash).toString("hex"));
      expect(hex(await prover.inclusion(seq, size))).toEqual(hex(path(seq, leaves)));
      expect(hex(await prover.consistency(first, size))).toEqual(first === 0 ? [] : hex(subproof(first, leaves, true)));
    }),
    { numRuns: 60 },
  );
});

test("a proof for more than the tree has is rejected", () => {
  const { store } = treeOf(leavesOf(3)).tiles;
  expect(() => new Prover(store).inclusion(3, 3)).toThrow("the tree has 3 events, not 4");
  expect(() => new Prover(store).consistency(4, 3)).toThrow("the tree has 3 events, not 4");
});

/** The number of hashes of level `l` is floor(s / 256^l), in tiles of 256 (C2SP tlog-tiles, "Partial Tiles"). */
describe.each([0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 70_000])("a tree of %i entries", (size) => {
  const { tiles, edge } = treeOf(leavesOf(size));

  test("has the tiles of tlog-tiles", () => {
    const expected = new Map<string, number>();
    for (let level = 0, count = size; count > 0; level++, count = Math.floor(count / TILE_WIDTH))
      for (let index = 0; index * TILE_WIDTH < count; index++)
        expected.set(`${level}/${index}`, 32 * Math.min(count - index * TILE_WIDTH, TILE_WIDTH));
    expect(new Map([...tiles.tiles].map(([name, { length }]) => [name, length]))).toEqual(expected);
  });

  test("continues from its tiles with the same root", () => {
    expect(Buffer.from(tiles.edge(size).root())).toEqual(Buffer.from(edge.root()));
    expect(Buffer.from(edge.root())).toEqual(Buffer.from(mth(leavesOf(size))));
  });
});

/** From the specification: a tree of 70,000 has 273 full tiles, one of 112; one full, one of 17; one of 1. */
test("the example of tlog-tiles", () => {
  const { tiles } = treeOf(leavesOf(70_000)).tiles;
  const widths = [...tiles].map(([name, { length }]) => [Number(name.split("/")[0]), length / 32] as const);
  const count = (level: number, width: number) => widths.filter(([l, w]) => l === level && w === width).length;
  expect([count(0, 256), count(0, 112), count(1, 256), count(1, 17), count(2, 1), widths.length]).toEqual([
    273, 1, 1, 1, 1, 277,
  ]);
});

test.each([
  ["checkpoint", { kind: "checkpoint" }],
  ["tile/0/000", { kind: "tile", level: 0, index: 0, width: 256 }],
  ["tile/63/x001/x234/067.p/255", { kind: "tile", level: 63, index: 1_234_067, width: 255 }],
  ["tile/entries/x001/000.p/1", { kind: "entries", index: 1_000, width: 1 }],
])("the path %s", (text, expected) => {
  expect(parseTreePath(text)).toEqual(expected);
  const parsed = parseTreePath(text);
  if (parsed === null || parsed.kind === "checkpoint") return;
  expect(tilePath(parsed.kind === "tile" ? parsed.level : "entries", parsed.index, parsed.width)).toBe(text);
});

test.each([
  ...["", "/checkpoint", "checkpoint/", "tile", "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/0/1000"],
  ...["tile/64/000", "tile/00/000", "tile/-1/000", "tile/0/x000/000", "tile/0/001/000", "tile/0/x001/x000"],
  ...["tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/", "tile/0/000/", "tile/data/000"],
  ...["tile/0/x999/x999/x999/x999/x999/x999/999", "tile/0/000\n", "tile/0/%30%30%30", "tile/0/-01"],
])("%j is no path", (text) => {
  expect(parseTreePath(text)).toBeNull();
});
