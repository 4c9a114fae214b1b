import type { Scenario } from "../harness/scenario.ts";
import { goLoad } from "../load/go-load.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { warmService } from "./warm-service.ts";

const scenario = (streams: number, work: string): Scenario => ({
  group: "verify",
  unit: "requests/s",
  judged: "ratio",
  needs: ["go"],
  name: `stream-verify-${streams}`,
  work,
  against: "unary verify, cached, gRPC",
  prepare: async (fixture) => {
    const { url, secrets, credential } = await warmService(fixture);
    return {
      subject: await goLoad(fixture, url, secrets, ["-streams", String(streams)]),
      baseline: await grpcLoad(fixture, url, verifyCall(credential)),
    };
  },
});

/** Verification of cached keys over StreamVerify, by a client in Go. */
export const streamScenarios: readonly Scenario[] = [
  scenario(1, "verify, cached, one stream of gRPC"),
  scenario(8, "verify, cached, eight streams of gRPC"),
];
