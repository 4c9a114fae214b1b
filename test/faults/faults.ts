import { serverRole } from "../../src/embedded-postgres/cluster.ts";
import { eventually } from "../support/keyhold.ts";
import type { Seeded } from "../support/seeded.ts";
import { backends, feedOf } from "./backends.ts";
import type { ClusterNode } from "./cluster.ts";
import type { Database } from "./database.ts";
import { lockRows } from "./row-locker.ts";

/** The target of faults. */
export interface FaultTarget {
  readonly nodes: readonly ClusterNode[];
  readonly database: Database;
}

type End = () => Promise<void> | void;

export interface Fault {
  /** Injects the fault, into the given node if it concerns one. Resolves to a function that ends it, if it lasts. */
  begin(target: FaultTarget, node: ClusterNode, seeded: Seeded): Promise<End | undefined>;
  /** Whether data that is not durable may be lost; then all records are compared afterwards. */
  readonly isCrash?: true;
  /** Whether the given node cannot answer during the fault. */
  readonly isOfNode?: true;
}

const HOUR = 3_600_000;

/** Values under which results would have another meaning, or none (`postgres/connection/session-settings.ts`); calls may fail with 503 only. */
const SESSION_SETTINGS = [
  ["bytea_output", "escape"],
  ["DateStyle", "German, DMY"],
  ["TimeZone", "Asia/Kathmandu"],
  ["search_path", "pg_catalog"],
  ["default_transaction_isolation", "serializable"],
  ["default_transaction_read_only", "on"],
  ["statement_timeout", "1ms"],
] as const;

/** Maximum delay of bytes in milliseconds. */
const JITTER = 15;

/** Milliseconds after which a shutdown of PostgreSQL counts as stuck. */
const SHUTDOWN_TIMEOUT = 6_000;

/** All faults that the guarantee covers, by the name in the report. */
export const FAULTS = {
  "node killed": {
    isCrash: true,
    isOfNode: true,
    begin: async (_, node) => {
      await node.kill();
      return () => node.start();
    },
  },
  "node restarted": {
    isOfNode: true,
    begin: async (_, node) => {
      await node.stop();
      return () => node.start();
    },
  },
  "node stopped": {
    isOfNode: true,
    begin: async (_, node) => {
      node.suspend();
      return () => node.resume();
    },
  },
  "node cut off": {
    isOfNode: true,
    begin: async (_, node, seeded) => {
      node.proxies.data.freeze("all");
      return () => node.proxies.data.thaw(seeded.pick(["deliver", "reset"]));
    },
  },
  "feed cut": {
    begin: async ({ database }, node) => {
      for (const { port } of await feedOf(database)) node.proxies.feed.resetFrom(port);
      return undefined;
    },
  },
  "connections reset": {
    begin: async (_, node) => {
      node.proxies.data.cut("rst");
      return undefined;
    },
  },
  "backends terminated": {
    begin: async ({ database }, _, seeded) => {
      const some = seeded.shuffled(await backends(database)).slice(0, 1 + seeded.below(4));
      for (const { pid } of some) signal(pid, "SIGTERM");
      return undefined;
    },
  },
  "backend killed": {
    isCrash: true,
    begin: async ({ database }, _, seeded) => {
      const [victim] = seeded.shuffled(await backends(database));
      if (victim !== undefined) signal(victim.pid, "SIGKILL");
      return undefined;
    },
  },
  "backend stopped": {
    begin: async ({ database }, _, seeded) => {
      const [victim] = seeded.shuffled(seeded.below(2) === 0 ? await feedOf(database) : await backends(database));
      if (victim === undefined) return undefined;
      signal(victim.pid, "SIGSTOP");
      return () => signal(victim.pid, "SIGCONT");
    },
  },
  "PostgreSQL restarted": {
    isCrash: true,
    begin: async ({ database }) => {
      const { pid } = database;
      signal(pid, "SIGINT");
      setTimeout(() => killIfStuck(database, pid), SHUTDOWN_TIMEOUT).unref();
      return undefined;
    },
  },
  "PostgreSQL killed": {
    isCrash: true,
    begin: async ({ database }) => {
      signal(database.pid, "SIGKILL");
      return undefined;
    },
  },
  "clock stepped": {
    begin: async (_, node, seeded) => {
      node.setClock((seeded.below(24) - 12) * HOUR);
      return undefined;
    },
  },
  "network slow": {
    begin: async ({ nodes }) => {
      for (const { proxies } of nodes) proxies.data.jitter = JITTER;
      return () => {
        for (const { proxies } of nodes) proxies.data.jitter = 0;
      };
    },
  },
  "session settings": {
    begin: async ({ database }, _, seeded) => {
      const [name, value] = seeded.pick(SESSION_SETTINGS);
      await alterRole(database, `SET ${name} = '${value}'`);
      // New sessions have it.
      await database.admin`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${serverRole} AND random() < 0.3`.catch(
        () => undefined,
      );
      return () => alterRole(database, `RESET ${name}`);
    },
  },
  "usage rejected": {
    begin: async ({ database }) => {
      await repeat(database, `REVOKE EXECUTE ON ROUTINE usage_flush FROM ${serverRole}`);
      return () => repeat(database, `GRANT EXECUTE ON ROUTINE usage_flush TO ${serverRole}`);
    },
  },
  "rows locked": { begin: async ({ database }, _, seeded) => lockRows(database, seeded) },
} satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof typeof FAULTS;

function alterRole(database: Database, change: string): Promise<void> {
  return repeat(database, `ALTER ROLE ${serverRole} ${change}`);
}

/** Repeats the statement while PostgreSQL restarts after another fault. */
function repeat({ admin }: Database, statement: string): Promise<void> {
  return eventually(() =>
    admin.unsafe(statement).then(
      () => true,
      () => false,
    ),
  );
}

/**
 * Kills a postmaster that is stuck. PostgreSQL 18.4 never exits if it is stopped during crash recovery: its startup process exits, and
 * the others stay.
 */
function killIfStuck(database: Database, pid: number): void {
  if (database.pid === pid) signal(pid, "SIGKILL");
}

/** Sends a signal; ignores a process that has exited. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {}
}
