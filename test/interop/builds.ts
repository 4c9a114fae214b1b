import { join } from "node:path";
import { cargoTarget } from "../support/programs/caches.ts";
import { type Command, succeed } from "../support/programs/run.ts";

/** Builds the Cargo package in a folder. Returns the command of its program, which runs in that folder. */
export async function buildWithCargo(cwd: string, program: string): Promise<Command> {
  const env = { CARGO_TARGET_DIR: cargoTarget };
  await succeed({ program: "cargo", args: ["build", "--quiet", "--locked"], cwd, env });
  return { program: join(cargoTarget, "debug", program), args: [], cwd };
}

/** Runs Maven without a terminal. */
export async function runMaven(cwd: string, args: readonly string[]): Promise<void> {
  await succeed({ program: "mvn", args: ["-q", "-B", ...args], cwd });
}
