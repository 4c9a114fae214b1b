import { rm } from "node:fs/promises";
import { join } from "node:path";
import { cargoTarget } from "../support/programs/caches.ts";
import { type Command, succeed } from "../support/programs/run.ts";

/** Builds a package of the Cargo workspace. Returns the command of its program, which runs in the folder of the package. */
export async function buildWithCargo(cwd: string, program: string): Promise<Command> {
  // Cargo reads the manifests of all packages, also that of the generated client.
  const openapi = join(import.meta.dirname, "openapi/java");
  await rm(join(openapi, "generated"), { recursive: true, force: true });
  await runMaven(openapi, ["openapi-generator:generate@rust"]);
  const env = { CARGO_TARGET_DIR: cargoTarget };
  await succeed({ program: "cargo", args: ["build", "--quiet", "--locked"], cwd, env });
  return { program: join(cargoTarget, "debug", program), args: [], cwd };
}

/** Runs Maven without a terminal. */
export async function runMaven(cwd: string, args: readonly string[]): Promise<void> {
  await succeed({ program: "mvn", args: ["-q", "-B", ...args], cwd });
}
