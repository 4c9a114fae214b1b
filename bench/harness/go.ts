import { basename, join } from "node:path";
import { run } from "./program.ts";
import type { Stage } from "./stage.ts";

/** Generates the code of the Go module in a folder, where it has some to generate, builds it, and resolves with the program. */
export async function buildGo(stage: Stage, folder: string): Promise<string> {
  const program = join(stage.dir, `go-${basename(folder)}`);
  await run(["go", "generate", "-C", folder]);
  await run(["go", "build", "-C", folder, "-o", program, "."]);
  return program;
}
