/**
 * The protocol of docs/consistency.md as a state machine: two servers of PostgreSQL, two nodes, one key that is revoked. README.md says what
 * is left out, and why that does no harm.
 */
import type { Machine, Step } from "./explore.ts";

/** S1 is the primary at first, S2 its standby, which may be promoted. Nobody stops S1 then. */
export type Server = "S1" | "S2";

/** What the protocol does at each point; `PROTOCOL` is what Keyhold does, and each variant takes one part out. */
export interface Protocol {
  /** A renewal goes over a data connection, or over the feed. */
  readonly renewalOver: "data" | "feed";
  /** A renewal is granted only if its echo came back over the feed. */
  readonly echo: boolean;
  /** A renewal is granted only by the server of the feed. */
  readonly renewalIdentity: boolean;
  /** A renewal is not granted if its wait for the standby was cancelled. */
  readonly renewalWarning: boolean;
  /** A lease is used from the moment before its renewal was sent, or from when it was granted. */
  readonly leaseFrom: "sent" | "granted";
  /** Ticks for which a lease is used. A clock that is slow, but within what the margin is for, makes one more of it. */
  readonly used: number;
  /** Ticks for which others wait for a lease that is not renewed. */
  readonly waited: number;
  /** What becomes of what was cached, and of reads in flight, when a node has joined: keys in the log, everything, or nothing is dropped. */
  readonly atJoin: "read the log" | "drop" | "keep";
  /** The log is read if the node was on the same server before, or in any case. */
  readonly logOf: "same server" | "any server";
  /** All events are numbered before the log is read. */
  readonly sequence: boolean;
  /** The log is read after the node listens and has its row, or before. */
  readonly logRead: "after joining" | "before joining";
  /** The log is read from the position of the last session that had a lease, or of the last session. */
  readonly positionOf: "last lease" | "last session";
  /** A read that is in flight when the key changes is not cached, and later calls do not join it. */
  readonly guardFills: boolean;
  /** A read is used only if the server of the feed answered it. */
  readonly readIdentity: boolean;
  /** Without a usable lease a verify needs a renewal that was sent after it began, or any renewal, or just reads. */
  readonly withoutLease: "later renewal" | "renewal" | "read";
  /** Which connection sends the barrier after a transaction: a data connection, which a pooler may lead to another server, or the feed. */
  readonly barrierOver: "data" | "feed";
  /** A barrier counts only if the server of the feed has sent it. */
  readonly barrierIdentity: boolean;
  /** A barrier counts only if the server of the transaction has sent it. */
  readonly changeIdentity: boolean;
  /** A change waits for the leases that its barrier returns, or for those that its transaction read before it committed. */
  readonly leasesRead: "with the barrier" | "before the commit";
  /** A change is answered only when all leases are accounted for. */
  readonly awaitLeases: boolean;
  /** A change whose wait for the standby was cancelled is not answered as a success. */
  readonly changeWarning: boolean;
  /** A transaction whose changes all found the key revoked waits for the standby as well. */
  readonly failedReplicated: boolean;
}

export const PROTOCOL: Protocol = {
  renewalOver: "data",
  echo: true,
  renewalIdentity: true,
  renewalWarning: true,
  leaseFrom: "sent",
  used: 1,
  waited: 2,
  atJoin: "read the log",
  logOf: "same server",
  sequence: true,
  logRead: "after joining",
  positionOf: "last lease",
  guardFills: true,
  readIdentity: true,
  withoutLease: "later renewal",
  barrierOver: "data",
  barrierIdentity: true,
  changeIdentity: true,
  leasesRead: "with the barrier",
  awaitLeases: true,
  changeWarning: true,
  failedReplicated: true,
};

/** What happens around the nodes. */
export interface World {
  /**
   * Where connections lead once S2 is promoted. Any: each feed, and each statement over a data connection, to whichever server. Moved: data
   * connections to S2, a feed to whichever. Split: all of node A to S2, all of node B to S1.
   */
  readonly connections: "any" | "moved" | "split";
  /** Once S2 is promoted, commits on S1 wait for ever; or S1 accepts them alone. */
  readonly oldPrimary: "waits" | "accepts";
  /**
   * Together: both nodes on S1. Split: S2 is promoted, A is there, and B is on S1 and has the key cached. Alone: B is not there yet. The
   * latter two are shorter ways to some counterexamples, like the next two. Cut off: B is not there any more, and has the key cached; A renews no lease.
   * Lost change: the same, S2 is promoted and A is there, and what B has cached was committed on S1 alone: as if the key was disabled on both, and
   * then enabled on S1.
   */
  readonly start: "together" | "split" | "alone" | "cut off" | "lost change";
  /** Whether S2 may be promoted. */
  readonly failover: boolean;
  /** Sessions of A and of B, and renewals in each. */
  readonly sessions: readonly [number, number];
  readonly renewals: number;
  /** Revocations that are attempted, by whichever node; several attempts of one node may share a transaction and its barrier. */
  readonly changes: number;
  /** Waits for the standby that are cancelled. */
  readonly cancels: number;
}

export const WORLD: World = {
  connections: "any",
  oldPrimary: "waits",
  start: "together",
  failover: true,
  sessions: [2, 2],
  renewals: 1,
  changes: 1,
  cancels: 0,
};

/** What a server has committed, visible to every statement. */
interface Tables {
  readonly isRevoked: boolean;
  /** Events of the audit log, each committed with a change of the key, and how many of them have a number. */
  readonly events: number;
  readonly size: number;
  /** The table `nodes`, by node. */
  readonly leases: readonly (Lease | null)[];
}

interface Lease {
  readonly session: number;
  readonly renewals: number;
}

type Notification =
  | { readonly type: "news" }
  /** Of the other node: its session. */
  | { readonly type: "barrier"; readonly session: number; readonly number: number }
  /** By the other node: its session, which is its lease as well. */
  | { readonly type: "acknowledgement"; readonly session: number; readonly number: number }
  | { readonly type: "echo"; readonly number: number }
  /** Of the audit log. */
  | { readonly type: "log"; readonly size: number };

/** Whether the events from a position of the log on are to be numbered, are to be read, or have the key. */
type Missed = "to number" | "to read" | "nothing" | "the key" | "unknown";

interface Position {
  readonly server: Server;
  readonly size: number;
}

interface Node {
  /** The server that the feed is connected to; null: no session. */
  readonly feed: Server | null;
  /** The number of the session, or of the last one. */
  readonly session: number;
  /** Notifications that were committed, and that the node has not received yet. */
  readonly queue: readonly Notification[];
  /** Whether the first renewal of the session is yet to be granted. */
  readonly isJoining: boolean;
  /** The size of the log by the last notification of the session. */
  readonly size: number;
  /** What the cache reflects, from the last session that had a lease; null while there is one, and if it is unknown. */
  readonly known: Position | null;
  readonly missed: Missed;
  /** Ticks for which the lease is still used. */
  readonly lease: number;
  /** Whether a renewal was granted in this session that may have been sent after a verify of the kind that counts began. */
  readonly isProven: boolean;
  readonly cache: Cached;
  readonly read: Read | null;
  readonly renewals: number;
  readonly renewal: Renewal | null;
  /** What a transaction that has not committed has read, if it reads the leases. */
  readonly begun: Begun | null;
  readonly change: Change | null;
}

interface Begun {
  readonly server: Server;
  /** The lease of the other node. */
  readonly lease: Lease | null;
}

type Cached = "nothing" | "live" | "revoked";

/** A read that a server has executed, and whose answer is in flight. */
interface Read {
  readonly server: Server;
  readonly value: "live" | "revoked";
  /** A verify of the kind that counts waits for it. */
  readonly isJoined: boolean;
  /** The key has changed meanwhile. */
  readonly isStale: boolean;
}

interface Renewal {
  readonly number: number;
  /** Ticks since it was sent. */
  readonly age: number;
  /** A revocation was answered before it was sent. */
  readonly isLate: boolean;
  readonly isExecuted: boolean;
  readonly isEchoed: boolean;
}

/** A transaction of revocations that is committed and not answered yet: one has revoked the key, or all found it revoked. */
interface Change {
  readonly number: number;
  readonly server: Server;
  readonly isRepeat: boolean;
  readonly begun: Begun | null;
  /** Whether a barrier was sent in this session. */
  readonly isSent: boolean;
  /** The lease of the other node that the barrier met, if it is not accounted for. */
  readonly missing: Missing | null;
}

interface Missing extends Lease {
  /** Ticks since it was first seen with this number of renewals. */
  readonly waited: number;
}

export interface State {
  readonly isPromoted: boolean;
  readonly S1: Tables;
  /** Until it is promoted, what has reached the standby. */
  readonly S2: Tables;
  readonly nodes: readonly Node[];
  /** A revocation was answered: OK, or `API_KEY_ALREADY_REVOKED`. */
  readonly isAnswered: boolean;
  readonly changes: number;
  readonly cancels: number;
  /** A verify that began after that was answered "live". */
  readonly isWrong: boolean;
}

const NODES = ["A", "B"];
const otherOf = (i: number) => 1 - i;

/** Both nodes have a session and a lease that was granted this moment; nothing is cached. */
function initial({ used, logRead }: Protocol, { start, renewals, changes, cancels }: World): State {
  const leases = NODES.map(() => ({ session: 1, renewals: 0 }));
  const tables: Tables = { isRevoked: false, events: 0, size: 0, leases };
  const node: Node = {
    feed: "S1",
    session: 1,
    queue: [],
    isJoining: false,
    size: 0,
    known: null,
    missed: "unknown",
    lease: used,
    isProven: false,
    cache: "nothing",
    read: null,
    renewals: 0,
    renewal: null,
    begun: null,
    change: null,
  };
  const rest = { isAnswered: false, changes, cancels, isWrong: false };
  if (start === "split") {
    const S2 = withLease(tables, 0, { session: 2, renewals: 0 });
    const nodes: Node[] = [
      { ...node, feed: "S2", session: 2 },
      { ...node, cache: "live" },
    ];
    return { isPromoted: true, S1: tables, S2, nodes, ...rest };
  }
  const known: Position = { server: "S1", size: 0 };
  const cutOff: Node = { ...node, feed: null, lease: 0, cache: "live", known, missed: firstMissed(logRead) };
  if (start === "cut off")
    return { isPromoted: false, S1: tables, S2: tables, nodes: [{ ...node, renewals }, cutOff], ...rest };
  if (start === "lost change") {
    const S2 = withLease({ ...tables, isRevoked: true }, 0, { session: 2, renewals: 0 });
    const nodes: Node[] = [{ ...node, feed: "S2", session: 2 }, cutOff];
    return { isPromoted: true, S1: { ...tables, events: 1 }, S2, nodes, ...rest };
  }
  const isAlone = start === "alone";
  const S1 = isAlone ? withLease(tables, 1, null) : tables;
  const other: Node = isAlone ? { ...node, feed: null, lease: 0 } : node;
  return { isPromoted: false, S1, S2: S1, nodes: [node, other], ...rest };
}

export function createMachine(protocol: Protocol = PROTOCOL, world: World = WORLD): Machine<State> {
  return {
    initial: initial(protocol, world),
    next: (state) => (isOver(state, protocol) ? [] : nextOf(state, protocol, world)),
    key: (state) => keyOf(state, world),
    isViolation: ({ isWrong }) => isWrong,
    goals: GOALS,
  };
}

const isServing = ({ feed, isJoining, lease }: Node) => feed !== null && !isJoining && lease > 0;

const GOALS: Readonly<Record<string, (state: State) => boolean>> = {
  "a live key is verified from the cache": ({ nodes }) =>
    nodes.some((node) => isServing(node) && node.cache === "live"),
  "the same after a failover": ({ nodes }) =>
    nodes.some((node) => node.feed === "S2" && isServing(node) && node.cache === "live"),
  "a revocation is answered": ({ isAnswered }) => isAnswered,
  "a revocation that S1 has not is answered": ({ isAnswered, S1 }) => isAnswered && !S1.isRevoked,
  "a revocation is answered while a node that has the key cached is paused": ({ isAnswered, nodes }) =>
    isAnswered && nodes.some(({ feed, cache }) => feed !== null && cache === "live"),
  "a revoked key is verified from the cache": ({ isAnswered, nodes }) =>
    isAnswered && nodes.some((node) => isServing(node) && node.cache === "revoked"),
  "the same after a failover, on both nodes": ({ isAnswered, nodes }) =>
    isAnswered && nodes.every((node) => node.feed === "S2" && isServing(node) && node.cache === "revoked"),
  "a verify without a lease is answered after a renewal": ({ nodes }) =>
    nodes.some(({ isProven, lease, cache }) => isProven && lease === 0 && cache === "revoked"),
  "a live key stays cached until the next lease": ({ nodes }) =>
    nodes.some(({ missed, cache, renewal }) => missed === "nothing" && cache === "live" && renewal?.isEchoed),
  "a node with a live key cached reads its change in the log": ({ nodes }) =>
    nodes.some(({ missed, cache }) => missed === "the key" && cache === "live"),
  "a verify waits for a read": ({ nodes }) => nodes.some(({ read }) => read?.isJoined),
};

type Steps = Step<State>[];

/** Whether no verify can be wrong any more: no revocation will be answered, or one was, and "live" stands nowhere. */
function isOver({ isPromoted, S1, S2, nodes, isAnswered, changes }: State, { readIdentity }: Protocol): boolean {
  if (!isAnswered) return changes === 0 && nodes.every(({ change }) => change === null);
  const mayLag = !readIdentity && !isPromoted;
  return (
    S1.isRevoked &&
    S2.isRevoked &&
    !mayLag &&
    nodes.every(({ cache, read }) => cache !== "live" && read?.value !== "live")
  );
}

function nextOf(state: State, protocol: Protocol, world: World): Steps {
  return [...nextOfWorld(state, protocol, world), ...NODES.flatMap((_, i) => nextOfNode(state, i, protocol, world))];
}

/** Time passes, the standby catches up or is promoted. Nodes do nothing meanwhile, which is what a pause is. */
function nextOfWorld(state: State, { used, waited, atJoin }: Protocol, world: World): Steps {
  const steps: Steps = [{ label: "a tick passes", state: tick(state, used + 1, waited) }];
  if (atJoin === "read the log")
    for (const server of ["S1", "S2"] as const) steps.push(...number(state, server, world));
  if (state.isPromoted || !world.failover) return steps;
  if (state.S1 !== state.S2) steps.push({ label: "the standby catches up", state: { ...state, S2: state.S1 } });
  steps.push({ label: "S2 is promoted", state: { ...state, isPromoted: true } });
  return steps;
}

/** Gives every event on a server a number, as any node may do at any time. */
function number(state: State, server: Server, world: World): Steps {
  const { events, size } = state[server];
  if (events === size || (server === "S2" && !state.isPromoted)) return [];
  return commit(state, server, world, (tables) => ({ ...tables, size: events })).map((done) => ({
    label: `the events on ${server} are numbered${suffix(done)}`,
    state: notify(done.state, server, { type: "log", size: events }),
  }));
}

function tick(state: State, maxAge: number, maxWaited: number): State {
  const nodes = state.nodes.map((node) => {
    const { lease, renewal, change } = node;
    if (lease === 0 && renewal === null && change === null) return node;
    const missing = change?.missing && { ...change.missing, waited: Math.min(maxWaited, change.missing.waited + 1) };
    return {
      ...node,
      lease: Math.max(0, lease - 1),
      renewal: renewal && { ...renewal, age: Math.min(maxAge, renewal.age + 1) },
      change: change && { ...change, missing: missing ?? null },
    };
  });
  return { ...state, nodes };
}

function nextOfNode(state: State, i: number, protocol: Protocol, world: World): Steps {
  const name = NODES[i];
  const rules = [join, recover, lose, renew, receive, read, verify, change, confirm];
  const steps = rules.flatMap((rule) => rule(state, i, nodeAt(state, i), protocol, world));
  return steps.map(({ label, state }) => ({ label: `${name}: ${label}`, state }));
}

// Sessions.

/** Listens, notes the size of the log, and inserts the row of the node. */
function join(state: State, i: number, node: Node, protocol: Protocol, world: World): Steps {
  const { feed, session, known, missed } = node;
  const isRead = missed === "nothing" || missed === "the key";
  if (feed !== null || session === world.sessions[i] || (isEarly(node, protocol) && !isRead)) return [];
  return feedServers(state, i, world).flatMap((server) => {
    const joined = { feed: server, session: session + 1, isJoining: true, size: state[server].size, renewals: 0 };
    const mayRead = protocol.atJoin === "read the log" && (protocol.logOf === "any server" || known?.server === server);
    const first = protocol.sequence ? "to number" : "to read";
    const own = { ...joined, missed: known === null || !mayRead ? "unknown" : isRead ? missed : first } as const;
    return commit(state, server, world, (tables) => withLease(tables, i, { session: session + 1, renewals: 0 })).map(
      (done) => ({
        label: `listens on ${server} and inserts its row${suffix(done)}`,
        state: update(done.state, i, own),
      }),
    );
  });
}

const isEarly = ({ known }: Node, { logRead }: Protocol) => logRead === "before joining" && known !== null;

/** Reads in the log what the node has missed. */
function recover(state: State, i: number, node: Node, protocol: Protocol, world: World): Steps {
  const { feed, isJoining, known, missed } = node;
  if (known === null) return [];
  const isBefore = feed === null && isEarly(node, protocol);
  const server = isBefore ? known.server : feed;
  if (server === null || (!isBefore && !isJoining)) return [];
  if (missed === "to number") {
    const after = update(state, i, { missed: "to read" });
    if (state[server].events === state[server].size)
      return [{ label: `finds all events on ${server} numbered`, state: after }];
    return number(after, server, world);
  }
  if (missed !== "to read") return [];
  const found = state[server].size > known.size ? "the key" : "nothing";
  return [{ label: `reads the log of ${server}: ${found}`, state: update(state, i, { missed: found }) }];
}

function lose(state: State, i: number, { feed, session }: Node, protocol: Protocol, world: World): Steps {
  // A node that cannot come back might as well be paused.
  if (feed === null || session === world.sessions[i]) return [];
  return [{ label: "loses its session", state: endSession(state, i, protocol) }];
}

/** The lease ends at once. What was cached, and reads in flight, are of no use any more if they are dropped when the node has joined again. */
function endSession(state: State, i: number, protocol: Protocol): State {
  const node = nodeAt(state, i);
  const { feed, isJoining, size, cache, read, change } = node;
  const dropsAll = protocol.atJoin === "drop";
  const isPosition = feed !== null && (!isJoining || protocol.positionOf === "last session");
  return update(state, i, {
    feed: null,
    queue: [],
    isJoining: false,
    size: 0,
    known: isPosition && protocol.atJoin === "read the log" ? { server: feed, size } : node.known,
    missed: firstMissed(protocol.logRead),
    lease: 0,
    isProven: false,
    cache: dropsAll ? "nothing" : cache,
    read: dropsAll ? null : read && { ...read, isJoined: false },
    renewals: 0,
    renewal: null,
    begun: null,
    change: change && { ...change, isSent: false, missing: null },
  });
}

function firstMissed(logRead: Protocol["logRead"]): Missed {
  return logRead === "before joining" ? "to number" : "unknown";
}

// Renewals.

function renew(state: State, i: number, node: Node, protocol: Protocol, world: World): Steps {
  const { feed, missed, renewals, renewal } = node;
  if (feed === null || missed === "to number" || missed === "to read") return [];
  const mayRenew = renewals < world.renewals;
  if (renewal === null) {
    if (!mayRenew) return [];
    const number = renewals + 1;
    const isLate = state.isAnswered || protocol.withoutLease === "renewal";
    const sent: Renewal = { number, age: 0, isLate, isExecuted: false, isEchoed: !protocol.echo };
    return [{ label: `sends renewal ${number}`, state: update(state, i, { renewals: number, renewal: sent }) }];
  }
  const steps: Steps = [];
  if (mayRenew) steps.push({ label: "gives a renewal up", state: update(state, i, { renewal: null }) });
  if (!renewal.isExecuted) steps.push(...executeRenewal(state, i, feed, node, renewal, protocol, world));
  else if (renewal.isEchoed) steps.push(...grant(state, i, node, renewal, protocol));
  return steps;
}

function executeRenewal(
  state: State,
  i: number,
  feed: Server,
  { session }: Node,
  renewal: Renewal,
  protocol: Protocol,
  world: World,
): Steps {
  const { renewalOver, renewalIdentity, renewalWarning } = protocol;
  const servers = renewalOver === "feed" ? [feed] : dataServers(state, i, world);
  return servers.flatMap((server) => {
    const { number } = renewal;
    const label = `${server} executes renewal ${number}`;
    if (state[server].leases[i]?.session !== session)
      return [{ label: `${label}: the row is gone`, state: endSession(state, i, protocol) }];
    return commit(state, server, world, (tables) => withLease(tables, i, { session, renewals: number })).map((done) => {
      const sent = notify(done.state, server, { type: "echo", number }, i);
      if (renewalIdentity && server !== feed)
        return { label: `${label}: another server`, state: endSession(sent, i, protocol) };
      const isRefused = renewalWarning && done.isCancelled;
      const after = { renewal: isRefused ? null : { ...renewal, isExecuted: true } };
      return { label: `${label}${suffix(done)}`, state: update(sent, i, after) };
    });
  });
}

function grant(
  state: State,
  i: number,
  node: Node,
  { number, age, isLate }: Renewal,
  { leaseFrom, used, atJoin, guardFills }: Protocol,
): Steps {
  const { isJoining, isProven, missed } = node;
  const left = used - (leaseFrom === "sent" ? age : 0);
  const grantedFor = (lease: number): State =>
    update(state, i, {
      ...(isJoining && atJoin !== "keep" ? dropMissed(node, missed, guardFills) : {}),
      known: null,
      missed: "unknown",
      renewal: null,
      isJoining: false,
      isProven: isProven || isLate,
      lease: Math.max(0, lease),
    });
  return [
    { label: `renewal ${number} is granted`, state: grantedFor(left) },
    { label: `renewal ${number} is granted, by a slow clock`, state: grantedFor(left + 1) },
  ];
}

function dropMissed(node: Node, missed: Missed, guardFills: boolean): Partial<Node> {
  if (missed === "nothing") return {};
  return missed === "the key" ? forget(node, guardFills) : { cache: "nothing", read: null };
}

// Notifications.

function receive(state: State, i: number, node: Node, { guardFills }: Protocol): Steps {
  const [notification, ...queue] = node.queue;
  if (notification === undefined) return [];
  return [receiveOne(update(state, i, { queue }), i, { ...node, queue }, notification, guardFills)];
}

function receiveOne(state: State, i: number, node: Node, notification: Notification, guardFills: boolean): Step<State> {
  switch (notification.type) {
    case "news":
      return { label: "receives the news", state: update(state, i, forget(node, guardFills)) };
    case "barrier": {
      const { session, number } = notification;
      const label = "receives the barrier and acknowledges it";
      const from = otherOf(i);
      if (node.feed === null || nodeAt(state, from).session !== session) return { label, state };
      return {
        label,
        state: notify(state, node.feed, { type: "acknowledgement", session: node.session, number }, from),
      };
    }
    case "acknowledgement": {
      const { session, number } = notification;
      const label = "receives the acknowledgement";
      const { change } = node;
      if (change === null || change.number !== number || change.missing?.session !== session) return { label, state };
      return { label, state: update(state, i, { change: { ...change, missing: null } }) };
    }
    case "echo": {
      const { number } = notification;
      const { renewal } = node;
      const label = `receives echo ${number}`;
      if (renewal?.number !== number) return { label, state };
      return { label, state: update(state, i, { renewal: { ...renewal, isEchoed: true } }) };
    }
    case "log": {
      const { size } = notification;
      return { label: `receives the size of the log: ${size}`, state: update(state, i, { size }) };
    }
  }
}

/** Who waits for a read that is stale began before the key changed, or so the node believes. */
function forget({ read }: Node, guardFills: boolean): Partial<Node> {
  if (!guardFills || read === null) return { cache: "nothing" };
  return { cache: "nothing", read: read.isJoined ? { ...read, isStale: true } : null };
}

// Reads and verifies.

/** Reads begin at any time: calls that began before a revocation was answered are not modelled but for what they cache. */
function read(state: State, i: number, node: Node, { readIdentity, atJoin }: Protocol, world: World): Steps {
  const isOut = node.feed === null || node.isJoining;
  if (atJoin === "drop" && isOut) return [];
  if (node.read !== null) return answerRead(state, i, node, node.read, readIdentity && !isOut);
  if (node.cache !== "nothing" || (atJoin === "read the log" && isOut)) return [];
  const isAny = !readIdentity || node.feed === null;
  const servers = dataServers(state, i, world).filter((server) => isAny || server === node.feed);
  const steps = servers.map((server) => executeRead(state, i, server, state[server].isRevoked));
  // A standby may lag behind, by anything.
  if (!readIdentity && !state.isPromoted) steps.push(executeRead(state, i, "S2", false));
  return steps;
}

function executeRead(state: State, i: number, server: Server, isRevoked: boolean): Step<State> {
  const value = isRevoked ? "revoked" : "live";
  return {
    label: `${server} executes a read: ${value}`,
    state: update(state, i, { read: { server, value, isJoined: false, isStale: false } }),
  };
}

function answerRead(
  state: State,
  i: number,
  { feed }: Node,
  { server, value, isJoined, isStale }: Read,
  readIdentity: boolean,
): Steps {
  // What follows a read of another server, the end of the session, may follow at any time.
  if (readIdentity && server !== feed) return [{ label: "discards a read", state: update(state, i, { read: null }) }];
  const after = update(state, i, isStale ? { read: null } : { read: null, cache: value });
  if (!isJoined) return [{ label: `receives the read: ${value}`, state: after }];
  return [answerVerify(after, `the verify is answered by the read: ${value}`, value)];
}

/** A verify that begins after a revocation was answered. Its lease is judged at once: one that waits for that sees no more than one that begins then. */
function verify(state: State, i: number, node: Node, { withoutLease }: Protocol, world: World): Steps {
  const { feed, isJoining, lease, isProven, cache, read } = node;
  if (!state.isAnswered) return [];
  if (withoutLease === "read" && lease === 0) {
    return dataServers(state, i, world).map((server) => {
      const value = state[server].isRevoked ? "revoked" : "live";
      return answerVerify(
        state,
        `a verify begins without a lease, and is answered by a read of ${server}: ${value}`,
        value,
      );
    });
  }
  if (feed === null || isJoining || (lease === 0 && !isProven)) return [];
  const by = lease > 0 ? "" : " after a renewal";
  if (cache !== "nothing")
    return [answerVerify(state, `a verify begins, and is answered from the cache${by}: ${cache}`, cache)];
  if (read === null || read.isJoined || read.isStale) return [];
  return [
    {
      label: `a verify begins, and waits for the read${by}`,
      state: update(state, i, { read: { ...read, isJoined: true } }),
    },
  ];
}

function answerVerify(state: State, label: string, value: "live" | "revoked"): Step<State> {
  return value === "live" ? { label, state: { ...state, isWrong: true } } : { label, state };
}

// Changes.

function change(state: State, i: number, node: Node, protocol: Protocol, world: World): Steps {
  if (state.changes === 0) return [];
  if (node.change !== null) return [{ label: "answers CHANGE_UNCONFIRMED", state: update(state, i, { change: null }) }];
  const { begun } = node;
  if (protocol.leasesRead === "before the commit" && begun === null) {
    return dataServers(state, i, world).map((server) => {
      const lease = state[server].leases[otherOf(i)] ?? null;
      return { label: `reads the leases on ${server}`, state: update(state, i, { begun: { server, lease } }) };
    });
  }
  const servers = begun === null ? dataServers(state, i, world) : [begun.server];
  const attempts = Array.from({ length: state.changes }, (_, index) => index + 1);
  return servers.flatMap((server) =>
    attempts.flatMap((count) => transact(state, i, node, server, count, protocol, world)),
  );
}

/** Commits a transaction of several attempts: the first revokes the key, unless it is revoked already; the others find it revoked. */
function transact(
  state: State,
  i: number,
  node: Node,
  server: Server,
  count: number,
  { changeWarning, failedReplicated, guardFills }: Protocol,
  world: World,
): Steps {
  const isRepeat = state[server].isRevoked;
  const started = { ...state, changes: state.changes - count };
  const done =
    isRepeat && !failedReplicated
      ? [{ state: started, isCancelled: false }]
      : commit(started, server, world, (tables) =>
          isRepeat ? tables : { ...tables, isRevoked: true, events: tables.events + 1 },
        );
  const what = isRepeat ? `finds the key revoked on ${server}` : `revokes the key on ${server}`;
  const others = count === 1 ? "" : `, with ${count - 1} more in the transaction`;
  return done.map((committed) => {
    const told = isRepeat ? committed.state : notify(committed.state, server, { type: "news" });
    const isUnconfirmed = changeWarning && committed.isCancelled;
    const { begun } = node;
    const change: Change = { number: state.changes, server, isRepeat, begun, isSent: false, missing: null };
    const after = { ...forget(node, guardFills), begun: null, change: isUnconfirmed ? null : change };
    return { label: `${what}${others}${suffix(committed)}`, state: update(told, i, after) };
  });
}

function confirm(state: State, i: number, node: Node, protocol: Protocol, world: World): Steps {
  const { feed, change } = node;
  if (feed === null || change === null) return [];
  if (!change.isSent) return sendBarrier(state, i, feed, node, change, protocol, world);
  if (change.missing !== null && protocol.awaitLeases)
    return look(state, i, feed, change, change.missing, protocol, world);
  const label = change.isRepeat ? "answers that the key is already revoked" : "answers that the key is revoked";
  // What becomes of other attempts makes no difference any more.
  const nodes = state.nodes.map((one) => ({ ...one, change: null }));
  return [{ label, state: { ...state, isAnswered: true, changes: 0, nodes } }];
}

function sendBarrier(
  state: State,
  i: number,
  feed: Server,
  { session }: Node,
  change: Change,
  protocol: Protocol,
  world: World,
): Steps {
  const { barrierOver, barrierIdentity, changeIdentity } = protocol;
  const over = { data: dataServers(state, i, world), feed: [feed] };
  return over[barrierOver].map((server) => {
    const label = `sends a barrier over ${server}`;
    const told = notify(state, server, { type: "barrier", session, number: change.number }, otherOf(i));
    if ((barrierIdentity && server !== feed) || (changeIdentity && server !== change.server)) {
      const ended = update(endSession(told, i, protocol), i, { change: null });
      return { label: `${label}: another server, answers CHANGE_UNCONFIRMED`, state: ended };
    }
    const lease = change.begun === null ? (state[server].leases[otherOf(i)] ?? null) : change.begun.lease;
    const missing = lease && { ...lease, waited: 0 };
    return { label, state: update(told, i, { change: { ...change, isSent: true, missing } }) };
  });
}

/** Looks, over the feed, what became of the lease that has not acknowledged the barrier, and deletes it if it is overdue. */
function look(
  state: State,
  i: number,
  feed: Server,
  change: Change,
  missing: Missing,
  { waited }: Protocol,
  world: World,
): Steps {
  const other = otherOf(i);
  const withMissing = (from: State, missing: Missing | null): State =>
    update(from, i, { change: { ...change, missing } });
  const name = NODES[other];
  const lease = state[feed].leases[other];
  if (lease?.session !== missing.session) {
    return [{ label: `sees that the lease of ${name} is gone`, state: withMissing(state, null) }];
  }
  const { renewals } = lease;
  if (renewals !== missing.renewals) {
    const seen = withMissing(state, { ...missing, renewals, waited: 0 });
    return [{ label: `sees that the lease of ${name} is renewed`, state: seen }];
  }
  if (missing.waited < waited) return [];
  return commit(state, feed, world, (tables) => withLease(tables, other, null)).map((done) => ({
    label: `deletes the overdue lease of ${name} on ${feed}${suffix(done)}`,
    state: withMissing(done.state, null),
  }));
}

// Servers.

/** Where a new feed may lead. A server in recovery is refused. */
function feedServers({ isPromoted }: State, i: number, { connections }: World): readonly Server[] {
  if (!isPromoted) return ["S1"];
  if (connections === "split") return i === 0 ? ["S2"] : ["S1"];
  return ["S1", "S2"];
}

/** Where a statement over a data connection may arrive. */
function dataServers(state: State, i: number, world: World): readonly Server[] {
  return world.connections === "moved" && state.isPromoted ? ["S2"] : feedServers(state, i, world);
}

interface Committed {
  readonly state: State;
  /** The wait for the standby was cancelled: the commit is visible, may be lost by a promotion, and the client got a WARNING. */
  readonly isCancelled: boolean;
}

/** Returns the possible outcomes of a commit: it becomes visible only when the standby has it, unless the wait is cancelled. */
function commit(state: State, server: Server, { oldPrimary }: World, change: (tables: Tables) => Tables): Committed[] {
  const changed = change(state[server]);
  if (server === "S2") return [{ state: { ...state, S2: changed }, isCancelled: false }];
  // The write-ahead log arrives in order: with this, everything before it.
  if (!state.isPromoted) {
    const replicated = { state: { ...state, S1: changed, S2: changed }, isCancelled: false };
    return [replicated, ...cancelled(state, changed)];
  }
  if (oldPrimary === "accepts") return [{ state: { ...state, S1: changed }, isCancelled: false }];
  return cancelled(state, changed);
}

function cancelled(state: State, S1: Tables): Committed[] {
  if (state.cancels === 0) return [];
  return [{ state: { ...state, S1, cancels: state.cancels - 1 }, isCancelled: true }];
}

function suffix({ isCancelled }: Committed): string {
  return isCancelled ? ", its wait for the standby is cancelled" : "";
}

function withLease(tables: Tables, i: number, lease: Lease | null): Tables {
  return { ...tables, leases: tables.leases.map((one, at) => (at === i ? lease : one)) };
}

/** To all nodes whose feed is there, or to one of them. */
function notify(state: State, server: Server, notification: Notification, to?: number): State {
  const nodes = state.nodes.map((node, at) =>
    node.feed === server && (to === undefined || to === at) ? { ...node, queue: [...node.queue, notification] } : node,
  );
  return { ...state, nodes };
}

function nodeAt({ nodes }: State, i: number): Node {
  const node = nodes[i];
  if (node === undefined) throw new RangeError(`there is no node ${i}`);
  return node;
}

function update(state: State, i: number, changed: Partial<Node>): State {
  return { ...state, nodes: state.nodes.map((node, at) => (at === i ? { ...node, ...changed } : node)) };
}

/**
 * Every field of a state, as short text. Where the nodes may do the same, two states that differ only by the names of the nodes are one.
 */
function keyOf(state: State, { connections, sessions: [ofA, ofB] }: World): string {
  const { isPromoted, S1, S2, nodes, isAnswered, changes, cancels, isWrong } = state;
  const world = `${+isPromoted}${tablesKey(S1)}${tablesKey(S2)}${+isAnswered}${changes}${cancels}${+isWrong}`;
  const [a = "", b = ""] = nodes.map(
    (node, i) => `/${leaseKey(S1.leases[i] ?? null)}${leaseKey(S2.leases[i] ?? null)}${nodeKey(node)}`,
  );
  return connections === "split" || ofA !== ofB || a < b ? world + a + b : world + b + a;
}

const tablesKey = ({ isRevoked, events, size }: Tables) => `${+isRevoked}${events}${size}`;

function nodeKey(node: Node): string {
  const {
    feed,
    session,
    queue,
    isJoining,
    size,
    known,
    missed,
    lease,
    isProven,
    cache,
    read,
    renewals,
    renewal,
    begun,
    change,
  } = node;
  const log = `${size}${known === null ? "" : known.server + known.size}${missed.slice(0, 4)}`;
  const own = `${feed}${session}${+isJoining}${log}${lease}${+isProven}${cache.charAt(0)}${renewals}`;
  return `${own},${readKey(read)},${renewalKey(renewal)},${begunKey(begun)}${changeKey(change)},${queue.map(notificationKey).join("")}`;
}

const leaseKey = (lease: Lease | null) => (lease === null ? "-" : `${lease.session}${lease.renewals}`);

const readKey = (read: Read | null) =>
  read === null ? "" : `${read.server}${read.value.charAt(0)}${+read.isJoined}${+read.isStale}`;

const renewalKey = (renewal: Renewal | null) =>
  renewal === null ? "" : `${renewal.number}${renewal.age}${+renewal.isLate}${+renewal.isExecuted}${+renewal.isEchoed}`;

const begunKey = (begun: Begun | null) => (begun === null ? "" : `${begun.server}${leaseKey(begun.lease)}`);

const changeKey = (change: Change | null) =>
  change === null
    ? ""
    : `${change.number}${change.server}${+change.isRepeat}${begunKey(change.begun)}${+change.isSent}${missingKey(change.missing)}`;

const missingKey = (missing: Missing | null) => (missing === null ? "" : `${leaseKey(missing)}${missing.waited}`);

function notificationKey(one: Notification): string {
  if (one.type === "news") return "n";
  if (one.type === "log") return `l${one.size}`;
  return one.type === "echo" ? `e${one.number}` : `${one.type.charAt(0)}${one.session}${one.number}`;
}
