/** Preloaded by a measured server (`--import`): appends the milliseconds of each garbage collection to the file `GC_PAUSES`. */
import { appendFileSync } from "node:fs";
import { PerformanceObserver } from "node:perf_hooks";

const file = process.env.GC_PAUSES ?? "";

new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) appendFileSync(file, `${duration}\n`);
}).observe({ entryTypes: ["gc"] });
