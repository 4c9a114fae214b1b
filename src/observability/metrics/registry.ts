import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { AnyFamily, HistogramFamily, HistogramSample, Labels } from "./family.ts";

/** What one process tells in a scrape, fit to be sent to another. */
export type Snapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** The metrics of this process: these, and those of Node and the process (`nodejs_…`, `process_…`). `labels` are on all of them. */
export function createRegistry(families: readonly AnyFamily[], labels: Labels): Registry {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  for (const family of families) registry.registerMetric(new Mirror(family));
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** The text of several processes together. Each sample has a label of its process, so nothing is added up: a reset is seen as one. */
export function merged(snapshots: readonly Snapshot[]): Promise<string> {
  const apart = snapshots.map((metrics) => metrics.map((metric) => ({ ...metric, aggregator: "first" })));
  return AggregatorRegistry.aggregate(apart).metrics();
}

interface Value {
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

/** A metric of prom-client that is read from a family. Its own counters look a child up by its labels at every call. */
class Mirror extends Gauge {
  readonly #family: AnyFamily;

  constructor(family: AnyFamily) {
    super({ name: family.name, help: family.help, registers: [] });
    this.#family = family;
  }

  override async get() {
    const metric = await super.get();
    // The types of the package take it for a number, which it is not.
    Reflect.set(metric, "type", this.#family.type);
    return { ...metric, values: valuesOf(this.#family) };
  }
}

function valuesOf(family: AnyFamily): Value[] {
  if (family.type === "histogram") return family.read().flatMap((sample) => histogramValues(family, sample));
  const read = family.read();
  if (read === null) return [];
  return typeof read === "number" ? [{ labels: {}, value: read }] : [...read];
}

/** Buckets that are added up, as the text format has them. */
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
