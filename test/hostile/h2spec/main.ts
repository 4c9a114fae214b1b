import { runH2spec } from "./run.ts";

/** `node test/hostile/h2spec/main.ts`: runs h2spec alone. */
const { cases, faults } = await runH2spec();
for (const fault of faults) console.error(fault);
console.info(`h2spec: ${cases} cases, ${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
