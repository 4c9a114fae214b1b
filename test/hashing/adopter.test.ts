import { expect, onTestFinished, test, vi } from "vitest";
import type { Adoption, AdoptionOutcome } from "../../src/hashing/adopter.ts";
import { createAdopter } from "../../src/hashing/adopter.ts";
import { operator } from "../support/principal.ts";

const digest = { keyId: "k1", digest: new Uint8Array(32) };
const adoptionOf = (keyId: string): Adoption => ({ keyId, hashDigest: digest, digest, otherDigests: [] });

/** An adopter whose statements the test ends. */
function newAdopter() {
  const calls: { readonly keyId: string; readonly answer: PromiseWithResolvers<AdoptionOutcome> }[] = [];
  const [outcomes, failed]: [string[], string[]] = [[], []];
  let now = 0;
  const adopter = createAdopter({
    store: ({ keyId }) => {
      const answer = Promise.withResolvers<AdoptionOutcome>();
      calls.push({ keyId, answer });
      return answer.promise;
    },
    clock: { now: () => now },
    onOutcome: (outcome) => outcomes.push(outcome),
    onFailure: (keyId) => failed.push(keyId),
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return {
    ...{ calls, outcomes, failed, settled, stop: adopter.stop },
    adopt: (keyId: string) => adopter.adopt(adoptionOf(keyId), operator),
    wait: (milliseconds: number) => {
      now += milliseconds;
    },
    end: async (index: number, how: AdoptionOutcome | Error) => {
      const answer = calls[index]?.answer ?? expect.unreachable();
      if (how instanceof Error) answer.reject(how);
      else answer.resolve(how);
      await settled();
    },
  };
}

test("two adoptions are in flight, of each key at most one, and the others follow in order", async () => {
  const { adopt, calls, end, outcomes } = newAdopter();
  for (const keyId of ["a", "b", "a", "c", "d", "c", "b"]) adopt(keyId);
  expect(calls.map(({ keyId }) => keyId)).toEqual(["a", "b"]);
  await end(1, "adopted");
  await end(0, "already");
  expect(calls.map(({ keyId }) => keyId)).toEqual(["a", "b", "c", "d"]);
  expect(outcomes).toEqual(["adopted", "already"]);
});

test("what exceeds the queue is dropped, and may come again", async () => {
  const { adopt, calls, end, settled } = newAdopter();
  for (let key = 0; key < 5_000; key++) adopt(`${key}`);
  for (let ended = 0; ended < calls.length; ended++) await end(ended, "adopted");
  expect(calls.length).toBe(1_002);
  adopt("4999");
  await settled();
  expect(calls.at(-1)?.keyId).toBe("4999");
});

test("a key that could not be adopted is reported once, and tried again ten seconds after each failure", async () => {
  const { adopt, calls, end, failed, wait } = newAdopter();
  for (let failure = 1; failure <= 3; failure++) {
    adopt("a");
    await end(failure - 1, new Error("read-only"));
    wait(9_999);
    adopt("a");
    expect(calls.length).toBe(failure);
    wait(1);
  }
  expect(failed).toEqual(["a"]);
});

test("a stop drops what waits, accepts nothing more, and waits five seconds for what is in flight", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { adopt, calls, end, stop } = newAdopter();
  for (const keyId of ["a", "b", "c"]) adopt(keyId);
  const isOver = vi.fn();
  const stopped = stop().then(isOver);
  adopt("d");
  await end(0, "adopted");
  await vi.advanceTimersByTimeAsync(4_999);
  expect(isOver).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await stopped;
  expect(calls.map(({ keyId }) => keyId)).toEqual(["a", "b"]);
});
