import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Servers run on one core; load, harness and PostgreSQL on the other, for subject and baseline alike. */
export type Cores = "server" | "load" | "both";

export interface Pinning {
  /** The reason why processes are not pinned; null if they are. */
  readonly unpinned: string | null;
  /** Returns the command that runs `command` on these cores. */
  on(cores: Cores, command: readonly string[]): readonly [string, ...string[]];
  /** Moves a running process; its later children inherit the cores. */
  move(cores: Cores, pid: number): void;
}

const CPUS: Readonly<Record<Cores, string>> = { server: "0", load: "1", both: "0,1" };

/** Moves this process, and with it all its later children, to the core of the load. */
export function pin(): Pinning {
  const unpinned = unpinnedReason();
  const pinning = unpinned === null ? pinned() : notPinned(unpinned);
  pinning.move("load", process.pid);
  return pinning;
}

function pinned(): Pinning {
  return {
    unpinned: null,
    on: (cores, command) => ["taskset", "-c", CPUS[cores], ...command],
    move: (cores, pid) => {
      execFileSync("taskset", ["-a", "-c", "-p", CPUS[cores], String(pid)], { stdio: "ignore" });
    },
  };
}

function notPinned(unpinned: string): Pinning {
  return { unpinned, on: (_, [program = "", ...args]) => [program, ...args], move: () => {} };
}

function unpinnedReason(): string | null {
  if (availableParallelism() < 2) return "the machine has one core";
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
    return null;
  } catch {
    return "taskset is not installed (Debian: apt-get install util-linux)";
  }
}
