import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { Barriers } from "../../src/cluster/barriers.ts";
import { OtherServerError } from "../../src/cluster/change-feed.ts";
import { ClusterSession } from "../../src/cluster/cluster-session.ts";
import { DatabaseHistory } from "../../src/cluster/history.ts";
import { Lease } from "../../src/cluster/lease.ts";
import { Membership } from "../../src/cluster/membership.ts";
import { Bucket } from "../../src/limits/bucket.ts";
import { QuotaBucket } from "../../src/limits/quota-bucket.ts";
import type { SharedBucket } from "../../src/limits/shared-bucket.ts";
import { type Checkout, Pool, type Work } from "../../src/postgres/connection/pool.ts";
import { rememberSchema, schemaOf } from "../../src/postgres/connection/session-settings.ts";
import { KeyLoader } from "../../src/verify/cache/key-loader.ts";
import type { FaultName } from "./faults.ts";

/**
 * Protections that can be removed from the product, to prove that the checker detects the consequences. Each function replaces a method
 * in this process before the product starts; the product itself has no switch for it.
 */
export const DEFECTS = {
  /** A lease never ends. */
  lease: () => {
    Object.defineProperty(Lease.prototype, "isFresh", { get: () => true });
  },
  /** The result of a read is cached even if the key changed while the read was in flight. */
  fence: () => {
    KeyLoader.prototype.invalidate = () => {};
    KeyLoader.prototype.invalidateAll = () => {};
  },
  /** What was changed while a node had no session is not evicted. */
  log: () => {
    const { open } = ClusterSession;
    ClusterSession.open = (options, timeout) => {
      Object.assign(options, { readMissed: async () => ({ keyIds: [], digests: [] }) });
      return open.call(ClusterSession, options, timeout);
    };
  },
  /** A change is acknowledged before the other nodes have received it. */
  wait: () => {
    Barriers.prototype.wait = () => Promise.resolve();
  },
  /** The position of a webhook endpoint in the log moves before its deliveries are stored. */
  outbox: () => {
    wrapWork((sql, work, checkout) => work(withLateDeliveries(sql), checkout));
  },
  /** A lease is extended without the notification of the renewal, by the response of any server. */
  echo: () => {
    const { open } = ClusterSession;
    ClusterSession.open = async (options, timeout) => {
      const session: ClusterSession = await open.call(
        ClusterSession,
        { ...options, renew: async (...renewal) => fromServerOf(session, await options.renew(...renewal)) },
        timeout,
      );
      return session;
    };
    const { renew } = ClusterSession.prototype;
    ClusterSession.prototype.renew = async function (...args) {
      return { ...(await renew.apply(this, args)), echo: Promise.resolve() };
    };
  },
  /** Verdicts are based on responses of any server. */
  "server identity of reads": ignoreServerOfReads,
  /** Changes are confirmed and verdicts returned by responses of any server; only renewals check its identity. */
  "server identity of changes": () => {
    ignoreServerOfReads();
    ClusterSession.prototype.requireServer = () => {};
    const { renew } = ClusterSession.prototype;
    ClusterSession.prototype.renew = async function (...args) {
      const renewed = await renew.apply(this, args);
      if (renewed.position.server === this.server) return renewed;
      throw new OtherServerError(renewed.position.server, this.server);
    };
  },
  /** Verdicts are returned without a lease, based on the database alone. */
  "lease of uncached verdicts": () => {
    Membership.prototype.renewed = () => Promise.resolve();
  },
  /** A change is acknowledged after its wait for the standby was cancelled. */
  "cancelled replication": () => {
    wrapWork((sql, work) => work(sql, { isReplicationCancelled: false }));
  },
  /** The retry of an executed change is acknowledged even if the standby may not have the change. */
  "durable repeat": () => {
    wrapWork((sql, work, checkout) => work(withoutMessages(sql), checkout));
  },
  /** Tokens of limits that were granted are used twice. */
  grants: () => {
    for (const { prototype } of [Bucket, QuotaBucket] as { prototype: Pick<SharedBucket, "take"> }[]) {
      const { take } = prototype;
      prototype.take = function (this: SharedBucket, grant, requested, sent, now) {
        take.call(this, grant, requested, sent, now);
        take.call(this, grant, { ...requested, owed: 0 }, sent, now);
      };
    }
  },
  /** A database is accepted even if it lacks changes. */
  rollback: () => {
    DatabaseHistory.prototype.check = () => null;
  },
};

export type Defect = keyof typeof DEFECTS;

/** Faults that must reveal the absence of a protection. Others need a failover (`failover/scenarios.ts`). */
export const DETECTED_BY: Readonly<Partial<Record<Defect, readonly FaultName[]>>> = {
  lease: ["node stopped", "node cut off"],
  fence: ["network slow"],
  log: ["node stopped", "node cut off"],
  wait: ["network slow", "node cut off"],
  outbox: ["node killed"],
};

function ignoreServerOfReads(): void {
  Membership.prototype.requireServer = () => {};
}

/** Returns the response as if it came from the server of the session. */
function fromServerOf<T extends { readonly position: object }>(session: ClusterSession, answer: T): T {
  return { ...answer, position: { ...answer.position, server: session.server } };
}

function wrapWork(serve: <T>(sql: Sql, work: Work<T>, checkout: Checkout) => PromiseLike<T>): void {
  const { run } = Pool.prototype;
  Pool.prototype.run = function <T>(this: Pool, work: Work<T>, statement?: string): Promise<T> {
    const served: Work<T> = (sql, checkout) => serve(sql, work, checkout);
    return Reflect.apply(run<T>, this, [served, statement]);
  };
}

const MESSAGE = /pg_logical_emit_message\([^)]*\)/;

/** Stores the deliveries of webhooks a second after the statement that should. */
function withLateDeliveries(sql: Sql): Sql {
  const isRows = (value: unknown) => typeof value === "string" && value.startsWith('[{"delivery_id"');
  const late = new Proxy(sql, {
    apply: (target, self, args) => {
      const rows = args.find(isRows);
      if (rows === undefined) return Reflect.apply(target, self, args);
      const moving = Reflect.apply(
        target,
        self,
        args.map((value) => (isRows(value) ? "[]" : value)),
      );
      return storeLater(target, moving, rows);
    },
  });
  rememberSchema(late, { isStandby: false, schema: schemaOf(sql) });
  return late;
}

async function storeLater(sql: Sql, moving: PromiseLike<readonly { readonly moved: number }[]>, rows: string) {
  const result = await moving;
  await sleep(1_000);
  if (result[0]?.moved !== 0)
    await sql`
      INSERT INTO webhook_deliveries (delivery_id, endpoint_id, seq, event_type, body)
      SELECT delivery_id, endpoint_id, seq, event_type, body FROM jsonb_populate_recordset(NULL::webhook_deliveries, ${rows}::text::jsonb)`;
  return result;
}

/** Removes the messages of barriers and of changes without effect, which make their transactions wait for replication. */
function withoutMessages(sql: Sql): Sql {
  const without = new Proxy(sql, {
    apply: (target, self, args) => {
      const isMessage = String(args[0]?.[0]).startsWith("pg_logical_emit_message");
      return isMessage ? target`` : Reflect.apply(target, self, args);
    },
    get: (target, name) =>
      name === "unsafe"
        ? (text: string, ...rest: []) => target.unsafe(text.replace(MESSAGE, "NULL"), ...rest)
        : Reflect.get(target, name),
  });
  rememberSchema(without, { isStandby: false, schema: schemaOf(sql) });
  return without;
}
