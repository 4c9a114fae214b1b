import type { Runner } from "./runner.ts";

/** Characters of each problem and input that are shown. */
const SHOWN = 6_000;

/** Prints the findings, each with how to have it again, and the number of inputs by kind. */
export function printReport({ findings, counts, inputs, memory, targets, slowestHonest, seed }: Runner): void {
  for (const { family, target, indices, problems, shown } of findings) {
    const only = indices.length === 0 ? family : indices.map((index) => `${family}:${index}`);
    const again = `KEYHOLD_HOSTILE_SEED=${seed} KEYHOLD_HOSTILE_ONLY=${only}`;
    console.error(`\n== ${target}: ${again}`);
    for (const problem of problems) console.error(`-- ${problem.slice(0, SHOWN)}`);
    console.error(shown.slice(0, SHOWN));
  }
  console.info("\ninputs by kind");
  for (const [kind, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    console.info(`${String(count).padStart(8)}  ${kind}`);
  }
  console.info(`${String(inputs).padStart(8)}  in all\n`);
  for (const { name, peak } of targets) {
    console.info(
      `${name}: at most ${peak.residentMiB} MiB resident; the event loop was late by ${peak.eventLoopDelay} ms at most; ` +
        `the longest turn of a single input took ${peak.turn} ms of CPU time`,
    );
    const curve = memory.filter(({ target }) => target === name).map((one) => `${one.retainedMiB} (${one.after})`);
    console.info(`    retained MiB: ${curve.join(", ")}`);
  }
  console.info(`slowest honest call: ${slowestHonest} ms`);
  console.info(`${inputs} inputs, ${findings.length} findings`);
}
