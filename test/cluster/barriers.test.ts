import { expect, test } from "vitest";
import { Barriers } from "../../src/cluster/barriers.ts";
import type { LeaseRow } from "../../src/cluster/change-feed.ts";
import { PeerLeases } from "../../src/cluster/peer-leases.ts";
import { systemMonotonic } from "../../src/lib/clock.ts";
import { feedSession, POSITION } from "./nodes.ts";

const LEASES: readonly LeaseRow[] = ["b", "c"].map((leaseId) => ({ leaseId, ttl: 60_000, renewals: 1 }));

/** A result with these leases; the server identity is irrelevant here. */
const answerOf = (leases: readonly LeaseRow[]) => ({ position: POSITION, leases });

/** A session that counts the checks of leases. */
function newSession() {
  const looks = { count: 0 };
  const session = feedSession(async () => {
    looks.count++;
    return LEASES;
  });
  return { barriers: new Barriers(session, new PeerLeases(), systemMonotonic), looks };
}

/** Whether it is settled after all pending microtasks and I/O, before any timer. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  promise.then(
    () => {
      settled = true;
    },
    () => undefined,
  );
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  return settled;
}

/** Sends a barrier whose result has these leases. */
async function send({ barriers }: ReturnType<typeof newSession>, leases = LEASES) {
  const settling = barriers.wait(barriers.open(), answerOf(leases));
  expect(await isSettled(settling)).toBe(leases.length === 0);
  // In an object, since an async function would await a returned promise.
  return { settling };
}

test("a change is released by the last acknowledgement, not by the next check of the leases", async () => {
  const session = newSession();
  const { settling } = await send(session);
  session.barriers.acknowledged({ from: "b", number: 1 });
  expect(await isSettled(settling)).toBe(false);
  session.barriers.acknowledged({ from: "c", number: 1 });
  expect(await isSettled(settling)).toBe(true);
  expect(session.looks.count).toBe(0);
  session.barriers.fail(new Error("the test is over"));
});

test("a change is released when a later statement shows that the leases it waits for have ended", async () => {
  const session = newSession();
  const { settling } = await send(session);
  session.barriers.observe([], session.barriers.now());
  expect(await isSettled(settling)).toBe(true);
  expect(session.looks.count).toBe(0);
  session.barriers.fail(new Error("the test is over"));
});

test("a statement sent before the result of a barrier does not release its change", async () => {
  const session = newSession();
  const sent = session.barriers.now();
  const { settling } = await send(session);
  session.barriers.observe([], sent);
  expect(await isSettled(settling)).toBe(false);
  session.barriers.fail(new Error("the test is over"));
});

test("an acknowledgement of a later barrier does not acknowledge an earlier one, since they use different connections", async () => {
  const session = newSession();
  const [first, second] = [await send(session), await send(session)];
  for (const from of ["b", "c"]) session.barriers.acknowledged({ from, number: 2 });
  expect(await isSettled(second.settling)).toBe(true);
  expect(await isSettled(first.settling)).toBe(false);
  for (const from of ["b", "c"]) session.barriers.acknowledged({ from, number: 1 });
  expect(await isSettled(first.settling)).toBe(true);
  session.barriers.fail(new Error("the test is over"));
});

test("an acknowledgement before the leases are read counts", async () => {
  const { barriers } = newSession();
  const barrier = barriers.open();
  for (const from of ["b", "c"]) barriers.acknowledged({ from, number: 1 });
  expect(await isSettled(barriers.wait(barrier, answerOf(LEASES)))).toBe(true);
});
