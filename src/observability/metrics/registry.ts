import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { AnyFamily, HistogramFamily, HistogramSample, Labels, Sample } from "./family.ts";

/** The metrics of one process at one scrape; serializable. */
export type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Returns a registry of these metrics and those of Node and the process (`nodejs_…`, `process_…`). `labels` are added to all. */
export function createRegistry(families: readonly AnyFamily[], labels: Labels): Registry {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  for (const family of families) {
    const { name, help, type } = family;
    // The counters of prom-client would look up a child by its labels at every call.
    const get = async () => ({ name, help, type, values: valuesOf(family) });
    registry.registerMetric(Object.assign(new Gauge({ name, help, registers: [] }), { get }));
  }
  collectDefaultMetrics({ register: registry });
  return registry;
}

type Value = Sample & { readonly metricName?: string };

function valuesOf(family: AnyFamily): Value[] {
  if (family.type === "histogram") return family.read().flatMap((sample) => histogramValues(family, sample));
  const read = family.read();
  if (read === null) return [];
  return typeof read === "number" ? [{ labels: {}, value: read }] : [...read];
}

/** Returns cumulative buckets, as the text format requires. */
function histogramValues({ name, bounds }: HistogramFamily, { labels, counts, sum }: HistogramSample): Value[] {
  let count = 0;
  const buckets = [...bounds.map(String), "+Inf"].map((le, place) => {
    count += counts[place] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
