import type { AnyFamily, Labels } from "./family.ts";
import type { Snapshot } from "./registry.ts";

/** The metrics of a process: as text for a scrape, as a snapshot for the primary to merge. */
export type MetricsSource = ReturnType<typeof createSource>;

/** Returns a source that loads prom-client, with its observers of Node, at the first scrape. */
export function createSource(families: readonly AnyFamily[], labels: Labels = {}) {
  let loading: ReturnType<typeof load> | undefined;
  const load = async () => (await import("./registry.ts")).createRegistry(families, labels);
  const registry = () => {
    loading ??= load();
    return loading;
  };
  return {
    text: async () => (await registry()).metrics(),
    snapshot: async () => (await registry()).getMetricsAsJSON(),
  };
}

/** Returns the text of several processes, whose samples have distinct labels. */
export async function mergedText(snapshots: readonly Snapshot[]): Promise<string> {
  return (await import("./registry.ts")).merged(snapshots);
}
