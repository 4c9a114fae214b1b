import { expect, test } from "vitest";
import type { LeaseRow } from "../../src/cluster/change-feed.ts";
import { WAITED_PART } from "../../src/cluster/lease.ts";
import { PeerLeases } from "../../src/cluster/peer-leases.ts";

const TTL = 1_000;
const END = TTL * WAITED_PART;

const lease = (leaseId: string, renewals: number, ttl = TTL): LeaseRow => ({ leaseId, renewals, ttl });
const ids = (leases: readonly LeaseRow[]) => leases.map(({ leaseId }) => leaseId);

test("a lease is overdue when it was not renewed for as long as others wait for it", () => {
  const peers = new PeerLeases();
  peers.observe([lease("a", 3)], 100);
  peers.observe([lease("a", 3)], 500);
  expect(peers.overdue(100 + END - 1)).toEqual([]);
  expect(peers.overdue(100 + END)).toEqual([lease("a", 3)]);
});

test("a renewal restarts the time, and so does a number that decreases", () => {
  const peers = new PeerLeases();
  peers.observe([lease("a", 3)], 0);
  peers.observe([lease("a", 4)], 900);
  expect(peers.overdue(END + 899)).toEqual([]);
  peers.observe([lease("a", 3)], 1_000);
  expect(peers.overdue(END + 999)).toEqual([]);
});

test("each lease has its own time", () => {
  const peers = new PeerLeases();
  peers.observe([lease("short", 0), lease("long", 0, 10 * TTL)], 0);
  peers.observe([lease("short", 0), lease("long", 0, 10 * TTL), lease("late", 0)], 500);
  expect(ids(peers.overdue(END))).toEqual(["short"]);
  expect(ids(peers.overdue(END + 500))).toEqual(["short", "late"]);
  expect(peers.nextEnd(["long", "late"])).toBe(500 + END);
  expect(peers.nextEnd(["long"])).toBe(10 * END);
});

test("an ended lease is neither overdue nor awaited, and returns as a new one", () => {
  const peers = new PeerLeases();
  peers.observe([lease("a", 0)], 0);
  peers.observe([], 10);
  expect([peers.overdue(END), peers.nextEnd(["a"])]).toEqual([[], undefined]);
  peers.observe([lease("a", 0)], 20);
  expect(peers.overdue(END + 19)).toEqual([]);
});
