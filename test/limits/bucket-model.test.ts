import fc from "fast-check";
import { expect, test } from "vitest";
import { createBucketStore } from "../../src/postgres/limits/bucket-store.ts";
import { openSchema } from "../postgres/new-keys.ts";
import { BucketModel } from "./bucket-model.ts";

const request = fc.record({
  bucket: fc.constantFrom("a", "b", "c"),
  burst: fc.constantFrom(1, 3, 10, 1_000),
  rate: fc.constantFrom(1e-7, 0.001, 0.3, 1),
  wanted: fc.nat(20),
  owed: fc.oneof(fc.constant(0), fc.nat(15)),
});
const step = fc.record({
  requests: fc.uniqueArray(request, { selector: ({ bucket }) => bucket, minLength: 1, maxLength: 3 }),
  /** By which the clock of the database steps before: a row that is older is a clock that is later. */
  clockStep: fc.constantFrom(0, 0, 0, 1, 7, 1_000, 3_600_000, -5, -3_600_000),
});

test("the model grants what the statement grants", async () => {
  const { pool } = await openSchema();
  const { grantTokens } = createBucketStore(pool);
  const stored = async (): Promise<Map<string, string>> => {
    const rows = await pool.run(
      (sql) => sql<{ bucket: string; time: string }[]>`
        SELECT bucket, extract(epoch FROM update_time)::text AS time FROM limit_buckets ORDER BY bucket`,
    );
    return new Map(rows.map(({ bucket, time }) => [bucket, time]));
  };
  /** Exact, in milliseconds: numbers of microseconds are integers. */
  const between = (from: string, to: string) => (micros(to) - micros(from)) / 1e6;

  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
    await pool.run((sql) => sql`DELETE FROM limit_buckets`);
    const model = new BucketModel();
    for (const { requests, clockStep } of steps) {
      await pool.run(
        (sql) => sql`UPDATE limit_buckets SET update_time = update_time - ${`${clockStep} ms`}::text::interval`,
      );
      const before = await stored();
      const grants = await grantTokens(requests);
      const after = await stored();
      for (const [index, one] of requests.entries()) {
        const [from, to] = [before.get(one.bucket), after.get(one.bucket) ?? ""];
        const expected = model.grant(one, 0, from === undefined ? 0 : between(from, to) * 1_000);
        expect(grants[index]?.granted).toBe(expected.granted);
        expect(grants[index]?.level).toBeCloseTo(expected.level, 6);
      }
    }
  });
  await fc.assert(property, { numRuns: Number(process.env.KEYHOLD_LIMIT_RUNS ?? 40) });
});

function micros(seconds: string): number {
  return Number(seconds.replace(".", ""));
}
