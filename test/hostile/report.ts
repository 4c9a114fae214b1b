import type { Runner } from "./runner.ts";

/** Maximum number of printed characters of each problem and input. */
const MAX_LENGTH = 6_000;

/** Prints the findings, each with the variables that reproduce it, and the number of inputs by kind. */
export function printReport({ findings, counts, inputs, memory, targets, slowestCall, seed }: Runner): void {
  for (const { family, target, indices, problems, description } of findings) {
    const only = indices.length === 0 ? family : indices.map((index) => `${family}:${index}`);
    const again = `KEYHOLD_HOSTILE_SEED=${seed} KEYHOLD_HOSTILE_ONLY=${only}`;
    console.error(`\n== ${target}: ${again}`);
    for (const problem of problems) console.error(`-- ${problem.slice(0, MAX_LENGTH)}`);
    console.error(description.slice(0, MAX_LENGTH));
  }
  console.info("\ninputs by kind");
  for (const [kind, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    console.info(`${String(count).padStart(8)}  ${kind}`);
  }
  console.info(`${String(inputs).padStart(8)}  in all\n`);
  for (const { name, peak } of targets) {
    console.info(
      `${name}: at most ${peak.residentMiB} MiB resident; event loop delayed by at most ${peak.eventLoopDelay} ms; ` +
        `longest tick of a single input: ${peak.tick} ms of CPU time`,
    );
    const samples = memory.filter(({ target }) => target === name).map((one) => `${one.retainedMiB} (${one.after})`);
    console.info(`    retained MiB: ${samples.join(", ")}`);
  }
  console.info(`slowest call of a well-behaved client: ${slowestCall} ms`);
  console.info(`${inputs} inputs, ${findings.length} findings`);
}
