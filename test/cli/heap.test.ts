import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const HEAP = new URL("../../src/cli/heap.ts", import.meta.url).href;

/** Runs a program with the functions of `heap.ts` and returns the number that it prints. */
async function numberOf(program: string): Promise<number> {
  const text = `import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from ${JSON.stringify(HEAP)};${program}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", text]);
  return Number(stdout);
}

/** Mean heap size in bytes of a process whose objects live long enough to be promoted, like those of large batches. */
async function meanHeap(before: string): Promise<number> {
  return numberOf(`
    ${before}
    const [ring, sizes] = [[], []];
    for (let made = 0; made < 2_000_000; made++) {
      ring[made % 200_000] = { made, text: "entry " + made, list: [made] };
      if (made >= 1_000_000 && made % 10_000 === 0) sizes.push(process.memoryUsage().heapTotal);
    }
    console.log(sizes.reduce((sum, size) => sum + size) / sizes.length);`);
}

/** Size of the young generation in bytes, of a process that has allocated many objects. */
function youngGeneration(before: string): Promise<number> {
  return numberOf(`
    import { getHeapSpaceStatistics } from "node:v8";
    ${before}
    const ring = [];
    for (let made = 0; made < 1_000_000; made++) ring[made % 10_000] = { made, list: [made] };
    console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size);`);
}

test("boundHeapGrowth limits heap growth", { timeout: 30_000 }, async () => {
  const [unbounded, bounded] = [await meanHeap(""), await meanHeap("boundHeapGrowth();")];
  expect(unbounded).toBeGreaterThan(0);
  expect(bounded).toBeLessThan(0.85 * unbounded);
});

test("holdYoungGeneration keeps the young generation small", async () => {
  const [held, released] = await Promise.all([
    youngGeneration("holdYoungGeneration();"),
    youngGeneration("holdYoungGeneration(); releaseYoungGeneration();"),
  ]);
  expect(held).toBeGreaterThan(0);
  expect(released).toBeGreaterThan(2 * held);
});
