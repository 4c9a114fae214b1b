import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const HEAP = new URL("../../src/cli/heap.ts", import.meta.url).href;

/** The mean size of the heap in bytes, of a process whose objects live long enough to get old, as those of large batches do. */
async function meanHeap(before: string): Promise<number> {
  const program = `
    import { boundHeapGrowth } from ${JSON.stringify(HEAP)};
    ${before}
    const [ring, sizes] = [[], []];
    for (let made = 0; made < 2_000_000; made++) {
      ring[made % 200_000] = { made, text: "entry " + made, list: [made] };
      if (made >= 1_000_000 && made % 10_000 === 0) sizes.push(process.memoryUsage().heapTotal);
    }
    console.log(sizes.reduce((sum, size) => sum + size) / sizes.length);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  return Number(stdout);
}

test("the heap grows by less when it is bounded", { timeout: 30_000 }, async () => {
  const [unbounded, bounded] = [await meanHeap(""), await meanHeap("boundHeapGrowth();")];
  expect(unbounded).toBeGreaterThan(0);
  expect(bounded).toBeLessThan(0.85 * unbounded);
});
