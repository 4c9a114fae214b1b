import { systemMonotonic } from "../lib/clock.ts";
import { UsageCounter } from "../usage/counter.ts";
import { UsageFlusher } from "../usage/flush.ts";
import type { Config } from "./config/config.ts";
import type { Jobs } from "./jobs.ts";
import type { Resources } from "./resources.ts";

/** The usage of this process; null if it is off. */
export type Usage = ReturnType<typeof createUsage>;

export function createUsage({ usage: { retention } }: Config, { usage: { store } }: Resources) {
  if (retention === null) return null;
  const counter = new UsageCounter();
  return { counter, flusher: new UsageFlusher({ counter, store, retention, monotonic: systemMonotonic }) };
}

/** Starts the job that stores usage. */
export function startUsageJob(jobs: Jobs, usage: Usage): void {
  if (usage === null) return;
  jobs.start({
    name: "usage",
    interval: 10_000,
    failureMessage: "the usage of keys could not be stored yet",
    runsAtStop: true,
    retriesAtStop: true,
    run: () => usage.flusher.run(),
  });
}
