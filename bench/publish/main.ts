/** `npm run bench:publish`: writes the table of docs/performance.md and the pictures of docs/img/ from results.json. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readResults, readThresholds } from "../harness/results.ts";
import { SCENARIOS } from "../scenarios/scenarios.ts";
import { pictures } from "./pictures.ts";
import { withResults } from "./table.ts";

const docs = resolve(import.meta.dirname, "../../docs");
const document = resolve(docs, "performance.md");

const results = await readResults(SCENARIOS);
if (results === null) {
  console.error("bench/results.json does not exist; run: npm run bench");
  process.exitCode = 1;
} else {
  await writeFile(document, withResults(await readFile(document, "utf8"), results, await readThresholds()));
  await mkdir(resolve(docs, "img"), { recursive: true });
  for (const [name, svg] of pictures(results)) await writeFile(resolve(docs, "img", name), svg);
}
