import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Fixture, once } from "../harness/fixture.ts";
import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { warmService } from "./warm-service.ts";

const program = once((fixture) => buildGo(fixture, join(import.meta.dirname, "../baseline/go/stream")));

/** Measures verifications over so many streams, in requests per second. */
async function streamLoad(fixture: Fixture, streams: number): Promise<Measure> {
  const { url, secrets } = await warmService(fixture);
  const credentials = join(fixture.dir, "stream-credentials");
  await writeFile(credentials, secrets.join("\n"));
  const options = ["-address", new URL(url).host, "-credentials", credentials, "-duration", `${fixture.seconds}s`];
  const command = [await program(fixture), "-streams", String(streams), ...options];
  return async () => Number(await run(fixture.pinning.on("load", command)));
}

const scenario = (streams: number, work: string): Scenario => ({
  group: "verify",
  unit: "requests/s",
  judged: "ratio",
  needs: ["go"],
  name: `stream-verify-${streams}`,
  work,
  against: "unary verify, cached, gRPC",
  prepare: async (fixture) => {
    const { url, credential } = await warmService(fixture);
    return {
      subject: await streamLoad(fixture, streams),
      baseline: await grpcLoad(fixture, url, verifyCall(credential)),
    };
  },
});

/** Verification of cached keys over StreamVerify, by a client in Go. */
export const streamScenarios: readonly Scenario[] = [
  scenario(1, "verify, cached, one stream of gRPC"),
  scenario(8, "verify, cached, eight streams of gRPC"),
];
