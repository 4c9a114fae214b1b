import { expect, test } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import { createReadProbe } from "../../src/server/read-probe.ts";

/** Milliseconds. */
const PATIENCE = 3_000;

/** A probe whose statement ends with an outcome, by a clock that a test moves. */
function probeOf(outcome: () => Promise<unknown>) {
  const state = { now: 0, runs: 0, failures: [] as Error[] };
  const probe = createReadProbe({
    run: () => {
      state.runs++;
      return outcome();
    },
    monotonic: () => state.now,
    patience: PATIENCE,
    onFailure: (error) => state.failures.push(error),
  });
  return { probe, state };
}

const unavailable = new KeyholdError("DATABASE_UNAVAILABLE", "the database does not answer");

test("an unavailable database is tolerated as long as a lease allows verifications from the cache", async () => {
  const { probe, state } = probeOf(() => Promise.reject(unavailable));
  expect(await probe.check()).toBe(true);
  state.now = PATIENCE - 1;
  expect(await probe.check()).toBe(true);
  state.now = PATIENCE;
  expect(await probe.check()).toBe(false);
  expect(state.failures).toEqual([unavailable]);
});

test("a statement that the database refuses is a failure at once, until it works again", async () => {
  let outcome: () => Promise<unknown> = () => Promise.reject(new Error("relation does not exist"));
  const { probe, state } = probeOf(() => outcome());
  expect(await probe.check()).toBe(false);
  outcome = () => Promise.resolve();
  state.now = 1_000;
  expect(await probe.check()).toBe(true);
  outcome = () => Promise.reject(new Error("relation does not exist"));
  state.now = 2_000;
  expect(await probe.check()).toBe(false);
  expect(state.failures).toHaveLength(2);
});

test("an overloaded database is no failure, and the statement runs once a second", async () => {
  const { probe, state } = probeOf(() => Promise.reject(new KeyholdError("OVERLOADED", "too many calls wait")));
  expect(await probe.check()).toBe(true);
  state.now = 999;
  expect(await probe.check()).toBe(true);
  expect(state.runs).toBe(1);
  state.now = 1_000;
  await probe.check();
  expect(state.runs).toBe(2);
  expect(state.failures).toEqual([]);
});
