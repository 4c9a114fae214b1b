import { cpuPerRequest } from "../harness/cpu.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { percentile, wrk } from "../load/wrk.ts";
import { startValkey, VALKEY } from "../peers/start.ts";
import { PATHS } from "../subject/client.ts";
import { issueKeys, KEY, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";

/** Active keys of each kind, which the load cycles through. */
const KEYS = 1_000;

/** Far more than the load uses, of one key. */
const QUOTA = 10_000_000;

const ADMITTING = { ...KEY, rate_limits: [{ name: "requests", quota: QUOTA, window: "1m" }] };

/** Used up before the load begins. */
const DENYING = { ...KEY, rate_limits: [{ name: "requests", quota: 1, window: "24h" }] };

/** The service with keys without limits, with one that admits every verification, and with one that denies it. */
const service = once(async (fixture: Fixture) => {
  const { server } = await install(fixture);
  const keys = async (key: object) => issueKeys(server.url, KEYS, {}, key);
  const [unlimited, admitted, denied] = [await keys(KEY), await keys(ADMITTING), await keys(DENYING)];
  const verdicts = await verifyAll(server.url, unlimited);
  await verifyAll(server.url, admitted);
  await verifyAll(server.url, denied);
  return { server, unlimited, admitted, denied, verdicts };
});

type Kind = "unlimited" | "admitted" | "denied";

async function load(fixture: Fixture, kind: Kind) {
  const all = await service(fixture);
  const bodies = await jsonBodies(
    fixture,
    all[kind].map((credential) => ({ credential })),
  );
  return { headers: JSON_HEADERS, connections: CONNECTIONS, bodies, url: all.server.url + PATHS.verify };
}

/** CPU time of the server per verification over REST. */
async function restCpu(fixture: Fixture, kind: Kind): Promise<Measure> {
  const { server } = await service(fixture);
  return cpuPerRequest(fixture, server, httpLoad(fixture, await load(fixture, kind)));
}

async function grpcCpu(fixture: Fixture, kind: Kind): Promise<Measure> {
  const { server, [kind]: secrets } = await service(fixture);
  return cpuPerRequest(fixture, server, await grpcLoad(fixture, server.url, verifyCall(secrets[0] ?? "")));
}

/** The route that asks Valkey. */
const valkey = once(async (fixture: Fixture) => {
  const { admitted, verdicts } = await service(fixture);
  const keys = admitted.map((credential, index) => ({ credential, verdict: verdicts[index] }));
  return startValkey(fixture, keys, "valkey-limit.ts", { QUOTA: String(QUOTA) });
});

async function valkeyLoad(fixture: Fixture) {
  const { url } = await valkey(fixture);
  return { ...(await load(fixture, "admitted")), url: `${url}/verify` };
}

const cpu = { group: "limits", unit: "µs", judged: "ratio", against: "the same of a key without limits" } as const;
const peer = {
  ...({ group: "limits", judged: "ratio" } as const),
  needs: [VALKEY],
  against: "Fastify route with a GCRA script in Valkey for each request",
};

/** The cost of a rate limit. */
export const limitScenarios: readonly Scenario[] = [
  {
    ...cpu,
    name: "verify-limited",
    work: "CPU of a verify, cached, key with a rate limit, REST HTTP/1.1",
    prepare: async (fixture) => ({
      subject: await restCpu(fixture, "admitted"),
      baseline: await restCpu(fixture, "unlimited"),
    }),
  },
  {
    ...cpu,
    name: "verify-limited-grpc",
    work: "CPU of a verify, cached, key with a rate limit, gRPC",
    prepare: async (fixture) => ({
      subject: await grpcCpu(fixture, "admitted"),
      baseline: await grpcCpu(fixture, "unlimited"),
    }),
  },
  {
    ...cpu,
    name: "verify-denied",
    work: "CPU of a verify that a rate limit denies, REST HTTP/1.1",
    prepare: async (fixture) => ({
      subject: await restCpu(fixture, "denied"),
      baseline: await restCpu(fixture, "unlimited"),
    }),
  },
  {
    ...peer,
    name: "limited-valkey",
    work: "verify, cached, keys with a rate limit, REST HTTP/1.1",
    unit: "requests/s",
    prepare: async (fixture) => ({
      subject: httpLoad(fixture, await load(fixture, "admitted")),
      baseline: httpLoad(fixture, await valkeyLoad(fixture)),
    }),
  },
  {
    ...peer,
    name: "limited-valkey-p99",
    work: "p99 of verify, cached, keys with a rate limit, REST HTTP/1.1",
    unit: "ms",
    prepare: async (fixture) => {
      const [subject, baseline] = [await load(fixture, "admitted"), await valkeyLoad(fixture)];
      return {
        subject: async () => percentile("p99")(await wrk(fixture, subject)),
        baseline: async () => percentile("p99")(await wrk(fixture, baseline)),
      };
    },
  },
];
