import { startBaseline } from "../baseline/start.ts";
import { cpuPerRequest } from "../harness/cpu.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { type WarmService, warmService, warmServiceWith } from "./warm-service.ts";

/** The service without access log and metrics. */
const withoutLogAndMetrics = once(warmServiceWith({ KEYHOLD_LOG_LEVEL: "warn", KEYHOLD_METRICS_PORT: "off" }));

/** The service that counts no usage. */
const withoutUsage = once(warmServiceWith({ KEYHOLD_USAGE: "off" }));

const shared = { group: "cpu", unit: "µs", judged: "ratio" } as const;

/** CPU time of the server per call, which other load on the machine affects less than a rate. */
export const cpuScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-observed",
    work: "CPU of a verify, cached, REST HTTP/1.1, with access log and metrics",
    against: "the same without either",
    prepare: async (fixture) => ({
      subject: await restCpu(fixture, await warmService(fixture)),
      baseline: await restCpu(fixture, await withoutLogAndMetrics(fixture)),
    }),
  },
  {
    ...shared,
    name: "verify-counted",
    work: "CPU of a verify, cached, REST HTTP/1.1, with usage",
    against: "the same without",
    prepare: async (fixture) => ({
      subject: await restCpu(fixture, await warmService(fixture)),
      baseline: await restCpu(fixture, await withoutUsage(fixture)),
    }),
  },
  {
    ...shared,
    name: "verify-http2",
    work: "CPU of a verify, cached, gRPC",
    against: "bare node:http2 that answers every request with the same frame",
    prepare: async (fixture) => {
      const { url, installation, credential, verdict } = await warmService(fixture);
      const baseline = await startBaseline(fixture, "http2", { answer: verdict });
      const call = verifyCall(credential);
      return {
        subject: cpuPerRequest(fixture, installation.server, await grpcLoad(fixture, url, call)),
        baseline: cpuPerRequest(fixture, baseline, await grpcLoad(fixture, baseline.url, call)),
      };
    },
  },
];

async function restCpu(fixture: Fixture, { url, secrets, installation }: WarmService) {
  const bodies = await jsonBodies(
    fixture,
    secrets.map((credential) => ({ credential })),
  );
  const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS, url: url + PATHS.verify };
  return cpuPerRequest(fixture, installation.server, httpLoad(fixture, load));
}
