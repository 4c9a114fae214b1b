/** `npm run model`: explores every variant, and prints what it found; `npm run model -- <words of a name>`: those, with their counterexamples. */
import { explore } from "./explore.ts";
import { createMachine } from "./model.ts";
import { LARGE, missingStep, SMALL } from "./variants.ts";

const words = process.argv.slice(2).join(" ");
let failed = false;
console.log("| Variant | States | Steps | Depth | Seconds | Counterexample |\n|---|---|---|---|---|---|");
for (const variant of [...SMALL, ...LARGE].filter((one) => one.name.includes(words))) {
  const { name, protocol, world } = variant;
  const start = performance.now();
  const { states, steps, depth, counterexample } = explore(createMachine(protocol, world));
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const found = counterexample === null ? "none" : `${counterexample.length} steps`;
  const counts = [states, steps].map((count) => count.toLocaleString("en")).join(" | ");
  console.log(`| ${name} | ${counts} | ${depth} | ${seconds} | ${found} |`);
  if (words !== "" && counterexample !== null) console.log(`\n${counterexample.join("\n")}\n`);
  const missing = missingStep(variant, counterexample);
  if (missing === null) continue;
  console.error(`${name} does not show: ${missing}\n${counterexample?.join("\n")}`);
  failed = true;
}
process.exitCode = failed ? 1 : 0;
