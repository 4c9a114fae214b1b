import { expect, test } from "vitest";
import { createBucketStore } from "../../../src/postgres/limits/bucket-store.ts";
import { openSchema } from "../new-keys.ts";

async function open() {
  const { pool, ...schema } = await openSchema();
  return { ...schema, pool, grant: createBucketStore(pool).grantTokens };
}

const HOUR = 3_600_000;
const bucket = { bucket: "key/1/requests", burst: 10, rate: 1 / HOUR, wanted: 4, owed: 0 };

test("grants what is left, and no more", async () => {
  const { grant } = await open();
  expect(await grant([bucket])).toEqual([{ granted: 4, level: 4 }]);
  const [second, third] = [await grant([bucket]), await grant([bucket])];
  expect([second[0]?.granted, third[0]?.granted]).toEqual([4, 2]);
  expect(third[0]?.level).toBeCloseTo(10, 3);
  expect((await grant([{ ...bucket, bucket: "key/2/requests" }]))[0]?.granted).toBe(4);
});
