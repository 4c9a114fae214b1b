import type { AnyFamily, Labels } from "./family.ts";
import type { Snapshot } from "./registry.ts";

/** The metrics of a process, for a scrape of its own and for one that its parent gathers. */
export interface MetricsSource {
  text(): Promise<string>;
  snapshot(): Promise<Snapshot>;
}

/** The library, and the observers of Node that come with it, are not there before the first scrape. */
export function createSource(families: readonly AnyFamily[], labels: Labels = {}): MetricsSource {
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

/** The text of several processes, each of whose samples have a label of their own. */
export async function mergedText(snapshots: readonly Snapshot[]): Promise<string> {
  return (await import("./registry.ts")).merged(snapshots);
}
