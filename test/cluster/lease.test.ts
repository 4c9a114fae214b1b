import { expect, test } from "vitest";
import { Lease, USED_PART, WAITED_PART } from "../../src/cluster/lease.ts";

/** A lease, and the two clocks of its node. */
function setUp() {
  const time = { monotonic: 1_000, wall: 5_000_000 };
  const lease = new Lease(() => time.monotonic, { now: () => time.wall });
  const pass = (milliseconds: number) => {
    time.monotonic += milliseconds;
    time.wall += milliseconds;
  };
  return { time, lease, pass };
}

test("a lease that was never granted is not fresh", () => {
  expect(setUp().lease.isFresh).toBe(false);
});

test("a lease starts before its request, and its node uses it for less time than the others wait", () => {
  const { lease, pass } = setUp();
  const asked = lease.moment;
  pass(400);
  lease.extend(asked, 1_000);
  pass(1_000 * USED_PART - 401);
  expect(lease.isFresh).toBe(true);
  pass(1);
  expect(lease.isFresh).toBe(false);
  expect(USED_PART).toBeLessThan(WAITED_PART);
});

test("a response after its deadline, as for a paused process, grants no lease", () => {
  const { lease, pass } = setUp();
  const asked = lease.moment;
  pass(3_600_000);
  lease.extend(asked, 1_000);
  expect(lease.isFresh).toBe(false);
});

test("a wall clock that is set back does not extend a lease, and one that is set forward ends it until the next renewal", () => {
  const { time, lease, pass } = setUp();
  lease.extend(lease.moment, 1_000);
  time.wall -= 7_200_000;
  expect(lease.isFresh).toBe(true);
  pass(1_000);
  expect(lease.isFresh).toBe(false);
  lease.extend(lease.moment, 1_000);
  expect(lease.isFresh).toBe(true);
  time.wall += 7_200_000;
  expect(lease.isFresh).toBe(false);
  lease.extend(lease.moment, 1_000);
  expect(lease.isFresh).toBe(true);
});

test("the wall clock detects a suspended machine, whose monotonic clock stood still", () => {
  const { time, lease } = setUp();
  lease.extend(lease.moment, 1_000);
  time.wall += 3_600_000;
  expect(lease.isFresh).toBe(false);
});

test("a released lease has ended", () => {
  const { lease } = setUp();
  lease.extend(lease.moment, 1_000);
  lease.end();
  expect(lease.isFresh).toBe(false);
});
