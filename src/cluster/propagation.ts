import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import { unconfirmed } from "./barriers.ts";
import { OtherServerError, type SendBarrier } from "./change-feed.ts";
import type { ClusterSession } from "./cluster-session.ts";
import { type DatabasePosition, historyOf, type ServerId } from "./server-id.ts";

/** Propagates changes to every node. */
export type Propagation = ReturnType<typeof createPropagation>;

/** A committed change that some nodes may not have received. */
export interface Propagating {
  /** History of the database that contains it (`server-id.ts`). */
  readonly history: string;
  /** Rejects when the waiting session is lost, and with `CHANGE_UNCONFIRMED`; null if there was no session. */
  readonly done: Promise<void> | null;
}

export interface PropagationOptions {
  readonly monotonic: Monotonic;
  /** Duration of a lease, in milliseconds. */
  readonly ttl: number;
  readonly session: () => ClusterSession | null;
  /** Resolves when there is a session. @throws `CHANGE_UNCONFIRMED` after a timeout. */
  readonly whenConnected: () => Promise<void>;
  readonly onOtherServer: (session: ClusterSession, error: OtherServerError) => void;
  /** Called with the position of the database after a change. */
  readonly onPosition: (position: DatabasePosition) => void;
}

/** Milliseconds during which the wait is repeated when sessions are lost. */
const PATIENCE = 15_000;

export function createPropagation(options: PropagationOptions) {
  const { monotonic, ttl, session: current, whenConnected, onOtherServer, onPosition } = options;
  /**
   * Sends a barrier with `send`, on the connection on which a change was committed.
   *
   * @throws what `send` throws; `CHANGE_UNCONFIRMED` when that connection leads to another server than that of the session.
   */
  const begin = async (send: SendBarrier): Promise<Propagating> => {
    const session = current();
    if (session === null) return { history: historyOf((await send(null)).position.server), done: null };
    const barrier = session.barriers.open();
    try {
      const answer = await send(barrier.mark);
      session.requireServer(answer.position);
      onPosition(answer.position);
      return { history: historyOf(session.server), done: session.barriers.wait(barrier, answer) };
    } catch (error) {
      session.barriers.abandon(barrier);
      if (!(error instanceof OtherServerError)) throw error;
      onOtherServer(session, error);
      throw unconfirmed(error);
    }
  };
  /**
   * Resolves when no node answers from a state before the change. If the session is lost, `repeat` sends another barrier on any
   * connection for changes.
   *
   * @throws `CHANGE_UNCONFIRMED`
   */
  const confirm = async (begun: Propagating, repeat: () => Promise<Propagating>): Promise<void> => {
    const start = monotonic();
    for (let last = begun; ; ) {
      const lost = await outcome(last);
      if (lost === null) return;
      if (monotonic() - start > PATIENCE) throw unconfirmed(lost);
      await whenConnected();
      last = await repeat().catch((error: unknown) => {
        throw unconfirmed(error);
      });
      // Another history may lack the change although every node agrees.
      if (last.history !== begun.history) throw unconfirmed(new Error("the primary has changed"));
    }
  };
  /**
   * Whether all nodes with a lease read new rows from these servers, so that a key that none of them can have cached needs no barrier: it
   * is the server of this session, and leases granted by another server before the promotion have ended.
   */
  const isAcknowledgedByAll = (servers: ReadonlySet<ServerId>): boolean => {
    const session = current();
    if (session === null || monotonic() - session.openTime < ttl) return false;
    return [...servers].every((server) => server === session.server);
  };
  return { begin, confirm, isAcknowledgedByAll };
}

/** Returns null if every node has acknowledged, else why the waiting session was lost. */
async function outcome({ done }: Propagating): Promise<unknown> {
  if (done === null) return new Error("no open database connection");
  try {
    await done;
    return null;
  } catch (error) {
    if (error instanceof KeyholdError && error.code === "CHANGE_UNCONFIRMED") throw error;
    return error;
  }
}
