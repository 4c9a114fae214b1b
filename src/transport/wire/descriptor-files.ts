import type { DescFile } from "@bufbuild/protobuf";

/** Returns files and their imports, except `excluded`. */
export function withImports(files: readonly DescFile[], excluded: ReadonlySet<DescFile> = new Set()): Set<DescFile> {
  const all = new Set(files);
  // Iterating over a set includes items added during the iteration.
  for (const { dependencies } of all) for (const file of dependencies) if (!excluded.has(file)) all.add(file);
  return all;
}
