import type { Seeded } from "../support/seeded.ts";
import { backends, feedOf } from "./backends.ts";
import type { ClusterNode } from "./cluster.ts";
import type { Database } from "./database.ts";
import { lockRows } from "./row-locker.ts";

/** What faults befall. */
export interface World {
  readonly nodes: readonly ClusterNode[];
  readonly database: Database;
}

type End = () => Promise<void> | void;

export interface Fault {
  /** Begins it and resolves with what ends it, if it lasts. What befalls one node befalls the given one. */
  begin(world: World, node: ClusterNode, seeded: Seeded): Promise<End | undefined>;
  /** Whether it may lose what was not stored: then all records are compared afterwards. */
  readonly isCrash?: true;
  /** Whether the given node cannot answer meanwhile. */
  readonly isOfNode?: true;
}

const HOUR = 3_600_000;

/** Milliseconds that bytes are held at the most in a fault of the network. */
const JITTER = 15;

/** Milliseconds after which a shutdown of PostgreSQL is stuck. */
const STUCK = 6_000;

/** Every fault that the guarantee names, by the name that the report shows. */
export const FAULTS = {
  "node killed": {
    isCrash: true,
    isOfNode: true,
    begin: async (_, node) => {
      await node.kill();
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
      setTimeout(() => insist(database, pid), STUCK).unref();
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
  "rows locked": { begin: async ({ database }, _, seeded) => lockRows(database, seeded) },
} satisfies Readonly<Record<string, Fault>>;

export type FaultName = keyof typeof FAULTS;

/** PostgreSQL 18.4 never ends when it is stopped while it recovers from a crash: its startup process ends, and the others stay. */
function insist(database: Database, pid: number): void {
  if (database.pid === pid) signal(pid, "SIGKILL");
}

/** Ignores a process that has ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {}
}
