import type { Sql } from "postgres";
import { Barriers } from "../../src/cluster/barriers.ts";
import { OtherServerError } from "../../src/cluster/change-feed.ts";
import { ClusterSession } from "../../src/cluster/cluster-session.ts";
import { DatabaseHistory } from "../../src/cluster/history.ts";
import { Lease } from "../../src/cluster/lease.ts";
import { Membership } from "../../src/cluster/membership.ts";
import { type Checkout, Pool, type Work } from "../../src/postgres/pool.ts";
import { KeyLoader } from "../../src/verify/key-loader.ts";
import type { FaultName } from "./faults.ts";

/**
 * What can be taken out of the product, to see that the checker finds what then goes wrong: each replaces a method in this process,
 * before the product starts, which has no switch for it itself.
 */
export const DEFECTS = {
  /** A lease is fresh for ever. */
  lease: () => {
    Object.defineProperty(Lease.prototype, "isFresh", { get: () => true });
  },
  /** The result of a read is cached even if the key changed while the read was in flight. */
  fence: () => {
    KeyLoader.prototype.invalidate = () => {};
    KeyLoader.prototype.invalidateAll = () => {};
  },
  /** A change is acknowledged before the other nodes have received it. */
  wait: () => {
    Barriers.prototype.wait = () => Promise.resolve();
  },
  /** A lease is extended although the notification of the renewal has not come, from whichever server has answered. */
  echo: () => {
    const { open } = ClusterSession;
    ClusterSession.open = async (options, timeout) => {
      const link: ClusterSession = await open.call(
        ClusterSession,
        { ...options, renew: async (...renewal) => here(link, await options.renew(...renewal)) },
        timeout,
      );
      return link;
    };
    const { renew } = ClusterSession.prototype;
    ClusterSession.prototype.renew = async function (...args) {
      return { ...(await renew.apply(this, args)), echo: Promise.resolve() };
    };
  },
  /** Verdicts are given by what any server has answered. */
  "server of reads": ignoreServerOfReads,
  /** Changes are confirmed, and verdicts given, by what any server has answered; only renewals look which one it is. */
  "server of changes": () => {
    ignoreServerOfReads();
    ClusterSession.prototype.requireServer = () => {};
    const { renew } = ClusterSession.prototype;
    ClusterSession.prototype.renew = async function (...args) {
      const renewed = await renew.apply(this, args);
      if (renewed.position.server === this.server) return renewed;
      throw new OtherServerError(renewed.position.server, this.server);
    };
  },
  /** Without a lease, whatever the database says. */
  "renewal after the call": () => {
    Membership.prototype.renewed = () => Promise.resolve();
  },
  /** A change is acknowledged although its wait for the standby was cancelled. */
  "cancelled replication": () => {
    wrapWork((sql, work) => work(sql, { isReplicationCancelled: false }));
  },
  /** A change that was made before is acknowledged although the standby may not have it. */
  "durable barrier": () => {
    wrapWork((sql, work, checkout) => work(withoutMessages(sql), checkout));
  },
  /** The database is accepted whatever it has lost. */
  rollback: () => {
    DatabaseHistory.prototype.check = () => null;
  },
};

export type Defect = keyof typeof DEFECTS;

/** Faults under which a part of the argument must be missed when it is taken away. Others need a failover (`failover/scenarios.ts`). */
export const EXPOSING: Readonly<Partial<Record<Defect, readonly FaultName[]>>> = {
  lease: ["node stopped", "node cut off"],
  fence: ["network slow"],
  wait: ["network slow", "node cut off"],
};

function ignoreServerOfReads(): void {
  Membership.prototype.requireServer = () => {};
}

/** An answer as if it came from the server that the link listens to. */
function here<T extends { readonly position: object }>(link: ClusterSession, answer: T): T {
  return { ...answer, position: { ...answer.position, server: link.server } };
}

function wrapWork(serve: <T>(sql: Sql, work: Work<T>, checkout: Checkout) => PromiseLike<T>): void {
  const { run } = Pool.prototype;
  Pool.prototype.run = function <T>(this: Pool, work: Work<T>, statement?: string): Promise<T> {
    const served: Work<T> = (sql, checkout) => serve(sql, work, checkout);
    return Reflect.apply(run<T>, this, [served, statement]);
  };
}

/** The barrier's message makes its transaction one that is replicated. */
function withoutMessages(sql: Sql): Sql {
  return new Proxy(sql, {
    apply: (target, self, args) => {
      const isMessage = String(args[0]?.[0]).startsWith("pg_logical_emit_message");
      return isMessage ? target`` : Reflect.apply(target, self, args);
    },
  });
}
