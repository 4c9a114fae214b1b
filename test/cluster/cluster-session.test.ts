import { expect, test } from "vitest";
import type { LeaseRow, RenewalAnswer } from "../../src/cluster/change-feed.ts";
import { ClusterSession } from "../../src/cluster/cluster-session.ts";
import { createPropagation, type Propagating } from "../../src/cluster/propagation.ts";
import { feedSession, POSITION } from "./nodes.ts";

const TTL = 1_000;
const PEER: LeaseRow = { leaseId: "b", ttl: TTL, renewals: 7 };

/** A session, the time of its clocks, what renewals are answered, and the overdue leases that it has deleted. */
async function openSession() {
  const state = { time: 0, answer: { position: POSITION, isHeld: true, isReplicated: true, leases: [PEER] } };
  const fenced: LeaseRow[] = [];
  const feed = feedSession(async (overdue) => {
    fenced.push(...overdue);
    return [];
  });
  const session = await ClusterSession.open(
    {
      open: async () => feed,
      renew: async (): Promise<RenewalAnswer> => state.answer,
      ...{ clock: { now: () => state.time }, monotonic: () => state.time, onChange: () => undefined },
    },
    TTL,
  );
  return { state, session, fenced };
}

test("the lease of a crashed node is deleted by a renewal that the standbys have, and by no other", async () => {
  const { state, session, fenced } = await openSession();
  await session.renew();
  state.time = 10 * TTL;
  state.answer.isReplicated = false;
  await session.renew();
  expect(fenced).toEqual([]);
  state.answer.isReplicated = true;
  await session.renew();
  expect(fenced).toEqual([PEER]);
});

test("a new key needs a barrier until leases that another server granted have ended: for the time of a lease", async () => {
  const { state, session } = await openSession();
  const { isAcknowledgedByAll } = createPropagation({
    ...{ monotonic: () => state.time, ttl: TTL, session: () => session },
    ...{ whenConnected: async () => undefined, onOtherServer: () => undefined, onPosition: () => undefined },
  });
  const servers = new Set([POSITION.server]);
  expect(isAcknowledgedByAll(servers)).toBe(false);
  state.time = TTL - 1;
  expect(isAcknowledgedByAll(servers)).toBe(false);
  state.time = TTL;
  expect(isAcknowledgedByAll(servers)).toBe(true);
  expect(isAcknowledgedByAll(new Set([POSITION.server, "1/2/1"]))).toBe(false);
});

test("a change is confirmed in the next session for 15 s while sessions are lost, and then it is unconfirmed", async () => {
  let time = 0;
  const { confirm } = createPropagation({
    ...{ monotonic: () => time, ttl: TTL, session: () => null },
    ...{ onOtherServer: () => undefined, onPosition: () => undefined },
    whenConnected: async () => {
      time += 1_000;
    },
  });
  const lost = (): Propagating => ({ history: "1/1", done: Promise.reject(new Error("the session was lost")) });
  let repeats = 0;
  const confirming = (lastSecond: number) =>
    confirm(lost(), async () => {
      repeats++;
      return time < lastSecond ? lost() : { history: "1/1", done: Promise.resolve() };
    });
  await confirming(16_000);
  expect(repeats).toBe(16);
  [time, repeats] = [0, 0];
  await expect(confirming(17_000)).rejects.toMatchObject({ code: "CHANGE_UNCONFIRMED" });
  expect(repeats).toBe(16);
});
