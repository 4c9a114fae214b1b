import { basename, join } from "node:path";
import type { Fixture } from "./fixture.ts";
import { run } from "./program.ts";

/** Runs `go generate` and `go build` in a folder. Resolves to the path of the program. */
export async function buildGo(fixture: Fixture, folder: string): Promise<string> {
  const program = join(fixture.dir, `go-${basename(folder)}`);
  await run(["go", "generate", "-C", folder]);
  await run(["go", "build", "-C", folder, "-o", program, "."]);
  return program;
}
