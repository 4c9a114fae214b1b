/**
 * Returns the options of Node with which a server appends the milliseconds of each garbage collection to a file. The module is JavaScript,
 * since Node would load its TypeScript compiler for a preloaded file, which takes memory.
 */
export function recordPauses(file: string): readonly string[] {
  const module = `
    import { appendFileSync } from "node:fs";
    import { PerformanceObserver } from "node:perf_hooks";
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) appendFileSync(${JSON.stringify(file)}, duration + "\\n");
    }).observe({ entryTypes: ["gc"] });`;
  return ["--import", `data:text/javascript,${encodeURIComponent(module)}`];
}
