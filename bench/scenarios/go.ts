import { deepStrictEqual } from "node:assert";
import { type KnownKey, startGo } from "../baseline/go/start.ts";
import { once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { PATHS, post } from "../subject/client.ts";
import { verifyAll } from "../subject/fill.ts";
import { verifyBodies, warmService } from "./warm-service.ts";

/** The keys of the service with their verdicts. */
const knownKeys = once(async (fixture): Promise<KnownKey[]> => {
  const { url, secrets } = await warmService(fixture);
  const verdicts = await verifyAll(url, secrets);
  return secrets.map((credential, index) => ({ credential, verdict: verdicts[index] }));
});

const shared = { group: "go", unit: "requests/s", judged: "ratio", needs: ["go"] } as const;

/** Compares verification with a program in Go. */
export const goScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-rest-go",
    work: "verify, cached, REST HTTP/1.1",
    against: "the same in Go, one core: net/http and encoding/json, no log and no metrics",
    prepare: async (fixture) => {
      const [{ url }, bodies, keys] = await Promise.all([
        warmService(fixture),
        verifyBodies(fixture),
        knownKeys(fixture),
      ]);
      const baseline = await startGo(fixture, "rest", keys);
      for (const { credential, verdict } of keys.slice(0, 10)) {
        deepStrictEqual(await post(`${baseline.url}/verify`, { credential }), verdict);
      }
      const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, url: url + PATHS.verify }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/verify` }),
      };
    },
  },
  {
    ...shared,
    name: "verify-grpc-go",
    work: "verify, cached, gRPC",
    against: "the same in Go, one core: grpc-go with the same messages, no log and no metrics",
    prepare: async (fixture) => {
      const { url, credential } = await warmService(fixture);
      const baseline = await startGo(fixture, "grpc", await knownKeys(fixture));
      return {
        subject: await grpcLoad(fixture, url, verifyCall(credential)),
        baseline: await grpcLoad(fixture, baseline.url, verifyCall(credential)),
      };
    },
  },
];
