import fc from "fast-check";
import { expect, test } from "vitest";
import { BUCKETS } from "../../../src/verify/cache/epochs.ts";
import { packStamp, unpackStamp } from "../../../src/verify/cache/stamp-codec.ts";

test("a stamp is three words, from which it is read", () => {
  const bucket = fc.nat(BUCKETS - 1);
  const stamp = fc.record({ count: fc.nat(2 ** 32 - 1), ofKey: bucket, ofName: bucket, ofActor: bucket });
  fc.assert(
    fc.property(stamp, (stamp) => {
      expect(unpackStamp(...packStamp(stamp))).toEqual(stamp);
    }),
  );
});
