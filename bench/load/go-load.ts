import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Fixture, once } from "../harness/fixture.ts";
import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";
import type { Measure } from "../harness/scenario.ts";

const program = once((fixture) => buildGo(fixture, join(import.meta.dirname, "../baseline/go/stream")));

/** Measures verifications of these credentials over gRPC, by a client in Go with these options, in requests per second. */
export async function goLoad(
  fixture: Fixture,
  url: string,
  credentials: readonly string[],
  options: readonly string[],
): Promise<Measure> {
  const file = join(fixture.dir, `credentials-${randomUUID()}`);
  await writeFile(file, credentials.join("\n"));
  const target = ["-address", new URL(url).host, "-credentials", file, "-duration", `${fixture.seconds}s`];
  const command = [await program(fixture), ...target, ...options];
  return async () => Number(await run(fixture.pinning.on("load", command)));
}
