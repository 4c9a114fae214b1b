import { startBaseline } from "../baseline/start.ts";
import type { Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS, PROTO_HEADERS } from "../load/http-load.ts";
import { PATHS } from "../subject/client.ts";
import { bareRoute, verifyBodies, verifyMessages, warmService } from "./warm-service.ts";

const CONNECT_PATH = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

const shared = { group: "verify", unit: "requests/s", judged: "ratio" } as const;

/** Verification of cached keys over each protocol. */
export const verifyScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-rest",
    work: "verify, cached, REST HTTP/1.1",
    against: "bare Fastify route with the same bodies",
    prepare: async (fixture) => {
      const [{ url }, baseline, bodies] = await Promise.all([
        warmService(fixture),
        bareRoute(fixture),
        verifyBodies(fixture),
      ]);
      const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, url: url + PATHS.verify }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/verify` }),
      };
    },
  },
  {
    ...shared,
    name: "verify-grpc",
    work: "verify, cached, gRPC",
    against: "@grpc/grpc-js echo of the same messages",
    prepare: async (fixture) => {
      const { url, credential, verdict } = await warmService(fixture);
      const baseline = await startBaseline(fixture, "grpc-echo", { answer: verdict });
      return {
        subject: await grpcLoad(fixture, url, verifyCall(credential)),
        baseline: await grpcLoad(fixture, baseline.url, verifyCall(credential)),
      };
    },
  },
  {
    ...shared,
    name: "verify-connect-json",
    work: "verify, cached, Connect JSON",
    against: "bare Fastify route with the same bodies",
    prepare: async (fixture) => {
      const [{ url }, baseline, bodies] = await Promise.all([
        warmService(fixture),
        bareRoute(fixture),
        verifyBodies(fixture),
      ]);
      const load = { headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, url: url + CONNECT_PATH }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/verify` }),
      };
    },
  },
  {
    ...shared,
    name: "verify-connect-binary",
    work: "verify, cached, Connect binary",
    against: "bare Fastify route with the same binary bodies, by the same codecs",
    prepare: async (fixture) => {
      const [{ url }, baseline, bodies] = await Promise.all([
        warmService(fixture),
        bareRoute(fixture),
        verifyMessages(fixture),
      ]);
      const load = { headers: PROTO_HEADERS, bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, url: url + CONNECT_PATH }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/proto` }),
      };
    },
  },
];
