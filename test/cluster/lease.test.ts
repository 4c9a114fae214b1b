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

test("a lease that nobody has granted is not fresh", () => {
  expect(setUp().lease.isFresh).toBe(false);
});

test("a lease counts from before it was asked for, and its node uses less of it than the others wait for", () => {
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

test("an answer that comes after its time, as to a process that was stopped, gives nothing", () => {
  const { lease, pass } = setUp();
  const asked = lease.moment;
  pass(3_600_000);
  lease.extend(asked, 1_000);
  expect(lease.isFresh).toBe(false);
});

test("a wall clock that goes back gives nothing, and one that goes forward takes until the next renewal", () => {
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

test("a machine that slept is found out by its wall clock, while its monotonic clock stood still", () => {
  const { time, lease } = setUp();
  lease.extend(lease.moment, 1_000);
  time.wall += 3_600_000;
  expect(lease.isFresh).toBe(false);
});

test("a lease that was given up is over", () => {
  const { lease } = setUp();
  lease.extend(lease.moment, 1_000);
  lease.end();
  expect(lease.isFresh).toBe(false);
});
