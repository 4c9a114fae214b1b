import { deepStrictEqual } from "node:assert";
import { type KnownKey, startGo } from "../baseline/go/start.ts";
import type { Scenario } from "../harness/scenario.ts";
import { once } from "../harness/stage.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { PATHS, post } from "../subject/client.ts";
import { stocked, verifyBodies } from "./stock.ts";

/** The keys of the service with a verdict on each. */
const knownKeys = once(async (stage): Promise<KnownKey[]> => {
  const { url, secrets } = await stocked(stage);
  const requests = secrets.map((credential) => ({ credential }));
  const { results } = await post(url + PATHS.batchVerify, { requests });
  return secrets.map((credential, index) => ({ credential, verdict: results[index] }));
});

const shared = { group: "go", unit: "requests/s", judged: "ratio", needs: ["go"] } as const;

/** The same verification written in Go. */
export const goScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-rest-go",
    work: "verify, cached, REST HTTP/1.1",
    against: "the same in Go, one core: net/http and encoding/json, no log and no metrics",
    prepare: async (stage) => {
      const [{ url }, bodies, keys] = await Promise.all([stocked(stage), verifyBodies(stage), knownKeys(stage)]);
      const baseline = await startGo(stage, "rest", keys);
      for (const { credential, verdict } of keys.slice(0, 10)) {
        deepStrictEqual(await post(`${baseline.url}/verify`, { credential }), verdict);
      }
      const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(stage, { ...load, url: url + PATHS.verify }),
        baseline: httpLoad(stage, { ...load, url: `${baseline.url}/verify` }),
      };
    },
  },
  {
    ...shared,
    name: "verify-grpc-go",
    work: "verify, cached, gRPC",
    against: "the same in Go, one core: grpc-go with the same messages, no log and no metrics",
    prepare: async (stage) => {
      const { url, credential } = await stocked(stage);
      const baseline = await startGo(stage, "grpc", await knownKeys(stage));
      return {
        subject: await grpcLoad(stage, url, verifyCall(credential)),
        baseline: await grpcLoad(stage, baseline.url, verifyCall(credential)),
      };
    },
  },
];
