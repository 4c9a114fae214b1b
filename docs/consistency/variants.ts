import { PROTOCOL, type Protocol, WORLD, type World } from "./model.ts";

export interface Variant {
  readonly name: string;
  readonly protocol: Protocol;
  readonly world: World;
  /** The last steps of the counterexample, or what its essence is; null: there must be none. */
  readonly shows: readonly string[] | null;
}

/** Without the log, as if every node came back to another server. There are fewer states. */
function variant(name: string, shows: Variant["shows"], protocol: Partial<Protocol>, world: Partial<World>): Variant {
  return withLog(name, shows, { atJoin: "drop", ...protocol }, world);
}

function withLog(name: string, shows: Variant["shows"], protocol: Partial<Protocol>, world: Partial<World>): Variant {
  return { name, shows, protocol: { ...PROTOCOL, ...protocol }, world: { ...WORLD, ...world } };
}

const ONE_SESSION: Partial<World> = { sessions: [1, 1] };
const SPLIT: Partial<World> = { start: "split", connections: "split", sessions: [2, 1] };
const ACCEPTS: Partial<World> = { connections: "moved", oldPrimary: "accepts" };

const CUT_OFF: Partial<World> = { start: "cut off", sessions: [1, 2], failover: false };

const FENCED = "deletes the overdue lease";
const FROM_CACHE = "is answered from the cache: live";
const OVERDUE: readonly string[] = ["sends a barrier over S2", FENCED, "answers that the key is revoked"];
const BY_OLD_PRIMARY: readonly string[] = [
  ...OVERDUE,
  "B: S1 executes renewal 1",
  "B: renewal 1 is granted",
  `B: a verify begins, and ${FROM_CACHE}`,
];
const BARRIER_ELSEWHERE: readonly string[] = [
  "revokes the key on S2",
  "sends a barrier over S1",
  "receives the barrier and acknowledges it",
  "answers that the key is revoked",
  FROM_CACHE,
];

/**
 * Returns the first of the essential steps that a counterexample lacks, in their order and with whatever else between them; null if it shows them all,
 * and ends with the last, or if there is none and must be none.
 */
export function missingStep({ shows }: Variant, counterexample: readonly string[] | null): string | null {
  if (shows === null) return counterexample === null ? null : "no counterexample";
  let from = 0;
  for (const step of shows) {
    const at = (counterexample ?? []).findIndex((label, index) => index >= from && label.includes(step));
    if (at === -1) return step;
    from = at + 1;
  }
  return from === counterexample?.length ? null : "the end";
}

/** What takes seconds: `npm test` explores it. */
export const SMALL: readonly Variant[] = [
  variant("protocol, from a split", null, {}, SPLIT),
  variant(
    "protocol, cancelled wait and repeat",
    null,
    {},
    { start: "alone", sessions: [2, 1], changes: 2, cancels: 1 },
  ),
  variant("protocol, cancelled wait, from a split", null, {}, { ...SPLIT, cancels: 1 }),
  variant("protocol, B joins later", null, {}, { start: "alone" }),
  variant(
    "old read without a lease (2b)",
    [...OVERDUE, "B: a verify begins without a lease, and is answered by a read of S1: live"],
    { withoutLease: "read" },
    SPLIT,
  ),
  variant(
    "as before, PgBouncer moved (5b)",
    BARRIER_ELSEWHERE,
    { renewalOver: "feed", barrierOver: "feed", changeIdentity: false, readIdentity: false },
    { ...ONE_SESSION, connections: "moved" },
  ),
  variant(
    "renewals over the feed (5c)",
    BY_OLD_PRIMARY,
    { renewalOver: "feed" },
    { ...ACCEPTS, start: "split", sessions: [2, 1] },
  ),
  variant("barrier over the feed", BARRIER_ELSEWHERE, { barrierOver: "feed", changeIdentity: false }, ONE_SESSION),
  variant("barrier without the identity of the change", BARRIER_ELSEWHERE, { changeIdentity: false }, ONE_SESSION),
  variant(
    "leases read before the commit",
    [
      "A: reads the leases on S1",
      "B: listens on S1 and inserts its row",
      "B: S1 executes a read: live",
      "A: revokes the key on S1",
      "A: answers that the key is revoked",
      FROM_CACHE,
    ],
    { leasesRead: "before the commit" },
    { start: "alone", sessions: [1, 2] },
  ),
  variant(
    "barrier without identity",
    [
      "A: S2 executes a read: live",
      "B: revokes the key on S2",
      "B: sends a barrier over S2",
      "B: sees that the lease of A is gone",
      `A: a verify begins, and ${FROM_CACHE}`,
    ],
    { barrierIdentity: false },
    { start: "split", sessions: [2, 1] },
  ),
  variant(
    "reads without identity",
    ["revokes the key on S2", "S1 executes a read: live", "a verify begins"],
    { readIdentity: false },
    { start: "split", sessions: [2, 1] },
  ),
  variant(
    "no wait for leases",
    ["sends a barrier", "answers that the key is revoked", FROM_CACHE],
    { awaitLeases: false },
    ONE_SESSION,
  ),
  variant(
    "renewal whose wait was cancelled",
    [...OVERDUE, "B: S1 executes renewal 1, its wait for the standby is cancelled", "B: renewal 1 is granted", "live"],
    { renewalWarning: false },
    { ...SPLIT, cancels: 1 },
  ),
  variant(
    "change whose wait was cancelled",
    [
      "revokes the key on S1, its wait for the standby is cancelled",
      "answers that the key is revoked",
      "listens on S2",
      FROM_CACHE,
    ],
    { changeWarning: false },
    { start: "alone", sessions: [2, 1], cancels: 1 },
  ),
  variant(
    "failed changes without a replicated transaction",
    [
      "revokes the key on S1, its wait for the standby is cancelled",
      "finds the key revoked on S1",
      "answers that the key is already revoked",
      "listens on S2",
      FROM_CACHE,
    ],
    { failedReplicated: false },
    { start: "alone", sessions: [2, 1], changes: 2, cancels: 1 },
  ),
  withLog("log, from a split", null, {}, SPLIT),
  withLog("log, lost change", null, {}, { start: "lost change" }),
  withLog("log, B cut off", null, {}, CUT_OFF),
  withLog("log, B cut off, or failover", null, {}, { ...CUT_OFF, failover: true }),
  withLog(
    "log of any server",
    [
      "finds the key revoked on S2",
      "B: listens on S2",
      "answers that the key is already revoked",
      "B: reads the log of S2: nothing",
      FROM_CACHE,
    ],
    { logOf: "any server" },
    { start: "lost change" },
  ),
  withLog(
    "log read without numbering the events",
    ["revokes the key on S1", "answers that the key is revoked", "B: reads the log of S1: nothing", FROM_CACHE],
    { sequence: false },
    CUT_OFF,
  ),
  withLog(
    "log read before joining",
    [
      "B: finds all events on S1 numbered",
      "revokes the key on S1",
      "B: reads the log of S1: nothing",
      "B: listens on S1",
      FROM_CACHE,
    ],
    { logRead: "before joining" },
    CUT_OFF,
  ),
  withLog(
    "log position of a session without a lease",
    [
      "revokes the key on S1",
      "the events on S1 are numbered",
      "answers that the key is revoked",
      "B: loses its session",
      "B: reads the log of S1: nothing",
      FROM_CACHE,
    ],
    { positionOf: "last session" },
    { ...CUT_OFF, sessions: [1, 3] },
  ),
  variant("limit: S1 accepts commits after the failover", BY_OLD_PRIMARY, {}, { ...SPLIT, oldPrimary: "accepts" }),
];

/** What takes minutes: `npm run model` explores it too. */
export const LARGE: readonly Variant[] = [
  variant("protocol", null, {}, {}),
  variant("protocol, one session each", null, {}, ONE_SESSION),
  variant("protocol, S1 accepts, all data connections moved", null, {}, ACCEPTS),
  variant("the same without the echo", null, { echo: false }, ACCEPTS),
  variant("the same without the identity in renewals", null, { renewalIdentity: false }, ACCEPTS),
  variant("protocol, A and B isolated from each other", null, {}, { connections: "split" }),
  variant("renewals over the feed, S1 waits", null, { renewalOver: "feed" }, {}),
  withLog("log, B cut off twice", null, {}, { ...CUT_OFF, sessions: [1, 3] }),
  withLog("log, no failover, one session of A", null, {}, { sessions: [1, 2], failover: false }),
  variant(
    "renewals without echo and identity",
    ["S2 executes renewal 1", "renewal 1 is granted", FENCED, FROM_CACHE],
    { echo: false, renewalIdentity: false },
    { ...ACCEPTS, ...ONE_SESSION },
  ),
  variant(
    "any renewal for a verify without a lease",
    [FENCED, "is answered from the cache after a renewal: live"],
    { withoutLease: "renewal" },
    ONE_SESSION,
  ),
  variant(
    "nothing dropped at join",
    ["S1 executes a read: live", "listens on S1 and inserts its row", "receives the read: live", FROM_CACHE],
    { atJoin: "keep" },
    { start: "alone", sessions: [1, 2] },
  ),
  variant(
    "reads in flight kept when the key changes",
    ["executes a read: live", "revokes the key", "receives the read: live", "answers that the key is revoked", "live"],
    { guardFills: false },
    ONE_SESSION,
  ),
  variant(
    "no margin for clocks",
    ["is granted, by a slow clock", "a tick passes", FENCED, FROM_CACHE],
    { waited: 1 },
    ONE_SESSION,
  ),
  variant(
    "lease from when it was granted",
    ["executes renewal 1", "a tick passes", "a tick passes", "renewal 1 is granted", FROM_CACHE],
    { leaseFrom: "granted" },
    ONE_SESSION,
  ),
];
