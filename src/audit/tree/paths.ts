import { TILE_WIDTH, type TilePosition } from "./merkle.ts";

/** What a path of C2SP tlog-tiles names. */
export type TreePath =
  | { readonly kind: "checkpoint" }
  | ({ readonly kind: "tile"; readonly width: number } & TilePosition)
  | { readonly kind: "entries"; readonly index: number; readonly width: number };

const TILE = /^tile\/(entries|\d|[1-5]\d|6[0-3])\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** Returns null if the path names nothing. */
export function parseTreePath(path: string): TreePath | null {
  if (path === "checkpoint") return { kind: "checkpoint" };
  const [, level, place = "", partial] = TILE.exec(path) ?? [];
  const [index, width] = [Number(place.replaceAll(/[x/]/g, "")), Number(partial ?? TILE_WIDTH)];
  // Each number has one path: no tile is cached twice, and leading zeros of an index are those of its last element.
  if (level === undefined || indexPath(index) !== place || (partial !== undefined && width >= TILE_WIDTH)) return null;
  return level === "entries" ? { kind: "entries", index, width } : { kind: "tile", level: Number(level), index, width };
}

/** Returns the path of the hashes of a level, or of entries, of which the tree has this number in this tile. */
export function tilePath(level: number | "entries", index: number, width = TILE_WIDTH): string {
  return `tile/${level}/${indexPath(index)}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** Returns 1234067 as `x001/x234/067`. */
function indexPath(index: number): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/\d{3}/g) ?? [];
  return groups.map((group, place) => (place < groups.length - 1 ? `x${group}` : group)).join("/");
}
