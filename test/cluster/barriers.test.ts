import { expect, test } from "vitest";
import { Barriers } from "../../src/cluster/barriers.ts";
import type { FeedSession, LeaseRow } from "../../src/cluster/feed.ts";
import { Peers } from "../../src/cluster/peers.ts";
import { systemMonotonic } from "../../src/lib/monotonic.ts";

const LEASES: readonly LeaseRow[] = ["b", "c"].map((leaseId) => ({ leaseId, ttl: 60_000, renewals: 1 }));

/** A session in which the test answers each barrier when it wants to, and that counts how often leases were looked after. */
function newSession() {
  const barriers: PromiseWithResolvers<readonly LeaseRow[]>[] = [];
  const looks = { count: 0 };
  const refuse = () => Promise.reject(new Error("not asked for here"));
  const session: FeedSession = {
    ...{ id: "a", join: refuse, renew: refuse, acknowledge: refuse, leave: refuse, end: () => undefined },
    barrier: () => {
      const answer = Promise.withResolvers<readonly LeaseRow[]>();
      barriers.push(answer);
      return answer.promise;
    },
    fence: async () => {
      looks.count++;
      return LEASES;
    },
  };
  return { barriers: new Barriers(session, new Peers(), systemMonotonic), sent: barriers, looks };
}

/** Whether it is settled once all that could go on has gone on, before any timer. */
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

/** Begins to settle, and answers the barrier with these leases. */
async function begin({ barriers, sent }: ReturnType<typeof newSession>, leases = LEASES) {
  const settling = barriers.settle();
  await isSettled(settling);
  sent.at(-1)?.resolve(leases);
  expect(await isSettled(settling)).toBe(leases.length === 0);
  // In an object, since a promise that an async function returns is awaited with it.
  return { settling };
}

test("a change is released by the last acknowledgement, not by the next look at the leases", async () => {
  const session = newSession();
  const { settling } = await begin(session);
  session.barriers.hear({ from: "b", number: 1 });
  expect(await isSettled(settling)).toBe(false);
  session.barriers.hear({ from: "c", number: 1 });
  expect(await isSettled(settling)).toBe(true);
  expect(session.looks.count).toBe(0);
  session.barriers.fail(new Error("the test is over"));
});

test("a change is released when others see that the leases it waits for are gone", async () => {
  const session = newSession();
  const { settling } = await begin(session);
  await begin(session, []);
  expect(await isSettled(settling)).toBe(true);
  expect(session.looks.count).toBe(0);
  session.barriers.fail(new Error("the test is over"));
});

test("an acknowledgement of a later barrier is one of every earlier", async () => {
  const session = newSession();
  const [first, second] = [await begin(session), await begin(session)];
  for (const from of ["b", "c"]) session.barriers.hear({ from, number: 2 });
  expect(await isSettled(first.settling)).toBe(true);
  expect(await isSettled(second.settling)).toBe(true);
  expect(session.looks.count).toBe(0);
  session.barriers.fail(new Error("the test is over"));
});

test("an acknowledgement that comes before the leases were read counts", async () => {
  const session = newSession();
  const settling = session.barriers.settle();
  await isSettled(settling);
  for (const from of ["b", "c"]) session.barriers.hear({ from, number: 1 });
  session.sent[0]?.resolve(LEASES);
  expect(await isSettled(settling)).toBe(true);
});
