import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Servers run on one core; load, harness and PostgreSQL on the other, for subject and baseline alike. */
export type Cores = "server" | "load" | "both";

export interface Pinning {
  /** Why not, if processes run wherever the system puts them. */
  readonly unpinned: string | null;
  /** The command that runs a command there. */
  on(cores: Cores, command: readonly string[]): readonly [string, ...string[]];
  /** Moves a process that runs; what it starts later goes with it. */
  move(cores: Cores, pid: number): void;
}

const CPUS: Readonly<Record<Cores, string>> = { server: "0", load: "1", both: "0,1" };

/** Moves this process, and so whatever it starts, to the core of the load. */
export function pin(): Pinning {
  const unpinned = whyNot();
  const pinning = unpinned === null ? pinned() : free(unpinned);
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

function free(unpinned: string): Pinning {
  return { unpinned, on: (_, [program = "", ...args]) => [program, ...args], move: () => {} };
}

function whyNot(): string | null {
  if (availableParallelism() < 2) return "there is one core";
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
    return null;
  } catch {
    return "there is no taskset (Debian: apt-get install util-linux)";
  }
}
