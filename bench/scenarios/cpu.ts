import { startBaseline } from "../baseline/start.ts";
import { cpuPerRequest } from "../harness/cpu.ts";
import type { Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { type Stocked, stocked, stockedWith } from "./stock.ts";

/** The service without its line of log per request and without its metrics. */
const silent = once(stockedWith({ KEYHOLD_LOG_LEVEL: "warn", KEYHOLD_METRICS_PORT: "off" }));

const shared = { group: "cpu", unit: "µs", judged: "ratio" } as const;

/** CPU time of the server per call: other work on the machine moves it less than a rate. */
export const cpuScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-observed",
    work: "CPU of a verify, cached, REST HTTP/1.1, with its line of log and its metrics",
    against: "the same without either",
    prepare: async (stage) => ({
      subject: await restCpu(stage, await stocked(stage)),
      baseline: await restCpu(stage, await silent(stage)),
    }),
  },
  {
    ...shared,
    name: "verify-http2",
    work: "CPU of a verify, cached, gRPC",
    against: "bare node:http2 that answers every request with the same frame",
    prepare: async (stage) => {
      const { url, installation, credential, verdict } = await stocked(stage);
      const baseline = await startBaseline(stage, "http2", { answer: verdict });
      const call = verifyCall(credential);
      return {
        subject: cpuPerRequest(stage, installation.server, await grpcLoad(stage, url, call)),
        baseline: cpuPerRequest(stage, baseline, await grpcLoad(stage, baseline.url, call)),
      };
    },
  },
];

async function restCpu(stage: Stage, { url, secrets, installation }: Stocked) {
  const bodies = await jsonBodies(
    stage,
    secrets.map((credential) => ({ credential })),
  );
  const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS, url: url + PATHS.verify };
  return cpuPerRequest(stage, installation.server, httpLoad(stage, load));
}
