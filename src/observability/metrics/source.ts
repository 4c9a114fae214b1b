import type { AnyFamily, Labels } from "./family.ts";
import type { Snapshot } from "./registry.ts";

/**
 * Returns the metrics of a process: as text for a scrape, as a snapshot for the primary to merge. Loads prom-client, with its observers of
 * Node, at the first scrape.
 */
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

/** Returns the text of several processes. Nothing is summed, since each sample has a label for its process: counter resets stay visible. */
export async function mergedText(snapshots: readonly Snapshot[]): Promise<string> {
  const { AggregatorRegistry } = await import("prom-client");
  const apart = snapshots.map((metrics) => metrics.map((metric) => ({ ...metric, aggregator: "first" })));
  return AggregatorRegistry.aggregate(apart).metrics();
}
