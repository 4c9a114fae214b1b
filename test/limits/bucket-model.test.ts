import fc from "fast-check";
import { expect, test } from "vitest";
import { createBucketStore } from "../../src/postgres/limits/bucket-store.ts";
import { openSchema } from "../postgres/new-keys.ts";
import { BucketModel } from "./bucket-model.ts";

const ACTORS = ["a", "b", "c"];
const BURSTS = [1, 3, 10, 1_000];

/** The bucket of the only limit of an actor. */
function bucketOf(actorId: string): string {
  return `actor/${actorId}/x`;
}

const request = fc.record({
  bucket: fc.constantFrom(...ACTORS.map(bucketOf)),
  burst: fc.constantFrom(...BURSTS),
  rate: fc.constantFrom(1e-7, 0.001, 0.3, 1),
  wanted: fc.nat(20),
  owed: fc.oneof(fc.constant(0), fc.nat(15)),
});
const change = fc.record({
  actorId: fc.constantFrom(...ACTORS),
  burst: fc.constantFrom(...BURSTS),
  quota: fc.constantFrom(1, 300),
  window: fc.constantFrom(1_000, 86_400_000),
});
const step = fc.record({
  /** Before the requests. */
  change: fc.option(change),
  requests: fc.uniqueArray(request, { selector: ({ bucket }) => bucket, minLength: 1, maxLength: 3 }),
  /** By which the clock of the database steps before: a row that is older is a clock that is later. */
  clockStep: fc.constantFrom(0, 0, 0, 1, 7, 1_000, 3_600_000, -5, -3_600_000),
});

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

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
  const put = ({ actorId, burst, quota, window }: Change) => {
    const limits = JSON.stringify([{ name: "x", quota, window: `${window / 1_000}s`, burst }]);
    return pool.run(
      (sql) => sql`
        INSERT INTO actors (actor_id, rate_limits, create_time, update_time) VALUES (${actorId}, ${limits}::text::jsonb, now(), now())
        ON CONFLICT (actor_id) DO UPDATE SET rate_limits = excluded.rate_limits`,
    );
  };

  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
    await pool.run((sql) => sql`WITH deleted AS (DELETE FROM actors) DELETE FROM limit_buckets`);
    const model = new BucketModel();
    for (const { change, requests, clockStep } of steps) {
      await pool.run(
        (sql) => sql`UPDATE limit_buckets SET update_time = update_time - ${`${clockStep} ms`}::text::interval`,
      );
      if (change !== null) {
        const [bucket, from] = [bucketOf(change.actorId), await stored()];
        await put(change);
        const elapsed = between(from.get(bucket), (await stored()).get(bucket));
        model.resize(bucket, { burst: change.burst, rate: change.quota / change.window }, 0, elapsed);
      }
      const before = await stored();
      const grants = await grantTokens(requests);
      const after = await stored();
      for (const [index, one] of requests.entries()) {
        const expected = model.grant(one, 0, between(before.get(one.bucket), after.get(one.bucket)));
        expect(grants[index]?.granted).toBe(expected.granted);
        expect(grants[index]?.level).toBeCloseTo(expected.level, 6);
      }
    }
  });
  await fc.assert(property, { numRuns: Number(process.env.KEYHOLD_LIMIT_RUNS ?? 40) });
});

/** Returns the milliseconds between two times of rows; 0 for a new row. Exact: numbers of microseconds are integers. */
function between(from: string | undefined, to: string | undefined): number {
  return from === undefined || to === undefined ? 0 : (micros(to) - micros(from)) / 1_000;
}

function micros(seconds: string): number {
  return Number(seconds.replace(".", ""));
}
