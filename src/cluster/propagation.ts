import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import { unconfirmed } from "./barriers.ts";
import { OtherServerError, type SendBarrier } from "./change-feed.ts";
import type { ClusterSession } from "./cluster-session.ts";
import { type DatabasePosition, historyOf, type ServerId } from "./server-id.ts";

/** How a change reaches every node. */
export interface Propagation {
  /**
   * Sends a barrier by `send`, over the connection on which a change was committed.
   *
   * @throws what `send` does; `CHANGE_UNCONFIRMED` when that connection leads to a server that this node does not listen to.
   */
  begin(send: SendBarrier): Promise<Propagating>;
  /**
   * Resolves when no node answers by anything from before the change. When the session is lost meanwhile, `repeat` begins again, over any
   * connection for changes.
   *
   * @throws `CHANGE_UNCONFIRMED`
   */
  confirm(begun: Propagating, repeat: () => Promise<Propagating>): Promise<void>;
  /**
   * Whether all nodes with a lease read what is new on these servers, so that what none of them can have cached needs no barrier: it is the server that
   * this node listens to, and leases that another has granted before it was promoted are over.
   */
  isAcknowledgedByAll(servers: ReadonlySet<ServerId>): boolean;
}

/** A change that is made, and that not every node may have heard of. */
export interface Propagating {
  /** Of the database in which it is made (`server-id.ts`). */
  readonly history: string;
  /** Rejects when the session that waits is lost, and with `CHANGE_UNCONFIRMED`; null: there was no session. */
  readonly done: Promise<void> | null;
}

export interface PropagationOptions {
  readonly monotonic: Monotonic;
  /** How long a lease is, in milliseconds. */
  readonly ttl: number;
  /** The session that there is. */
  readonly session: () => ClusterSession | undefined;
  /** Resolves when there is one. @throws `CHANGE_UNCONFIRMED` when it does not come in time. */
  readonly whenConnected: () => Promise<void>;
  readonly onOtherServer: (link: ClusterSession, error: OtherServerError) => void;
  /** Told where the database was after a change. */
  readonly onPosition: (position: DatabasePosition) => void;
}

/** How long to begin again when one session after the other is lost, in milliseconds. */
const PATIENCE = 15_000;

export function createPropagation(options: PropagationOptions): Propagation {
  const { monotonic, ttl, session: current, whenConnected, onOtherServer, onPosition } = options;
  const begin = async (send: SendBarrier): Promise<Propagating> => {
    const link = current();
    if (link === undefined) return { history: historyOf((await send(null)).position.server), done: null };
    const barrier = link.barriers.open();
    try {
      const answer = await send(barrier.mark);
      link.requireServer(answer.position);
      onPosition(answer.position);
      return { history: historyOf(link.server), done: link.barriers.wait(barrier, answer) };
    } catch (error) {
      link.barriers.abandon(barrier);
      if (!(error instanceof OtherServerError)) throw error;
      onOtherServer(link, error);
      throw unconfirmed(error);
    }
  };
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
      // Another history may lack the change, although every node agrees.
      if (last.history !== begun.history) throw unconfirmed(new Error("the database has changed meanwhile"));
    }
  };
  const isReadByAll = (servers: ReadonlySet<ServerId>): boolean => {
    const link = current();
    if (link === undefined || monotonic() - link.openTime < ttl) return false;
    return [...servers].every((server) => server === link.server);
  };
  return { begin, confirm, isAcknowledgedByAll: isReadByAll };
}

/** Null: every node has heard. Else why the session that waited is lost. */
async function outcome({ done }: Propagating): Promise<unknown> {
  if (done === null) return new Error("there was no session");
  try {
    await done;
    return null;
  } catch (error) {
    if (error instanceof KeyholdError && error.code === "CHANGE_UNCONFIRMED") throw error;
    return error;
  }
}
