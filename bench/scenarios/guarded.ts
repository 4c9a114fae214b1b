import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, post } from "../subject/client.ts";
import { issueKeys, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";
import { bareRoute, warmService } from "./warm-service.ts";

const KEYS = 1000;

/** The service with `KEYHOLD_AUTH=admin-token` and its own keys, all of which are cached. */
const guarded = once(async (fixture: Fixture) => {
  const open = await install(fixture);
  const { url } = open.server;
  const { secret } = await post(url + PATHS.issued, { name: "bench", actor_id: "bench", scopes: ["keyhold:verify"] });
  const secrets = await issueKeys(url, KEYS);
  await open.server.stop();
  const installation = await install(fixture, { dataDir: open.dataDir, environment: { KEYHOLD_AUTH: "admin-token" } });
  const headers = { authorization: `Bearer ${secret}` };
  await verifyAll(installation.server.url, secrets, headers);
  return { url: installation.server.url, secrets, headers };
});

const shared = { group: "guarded", unit: "requests/s", judged: "ratio" } as const;

/** Verification with an admin token in every request, so that each request needs two verdicts. */
export const guardedScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-rest-guarded",
    work: "verify, cached, REST HTTP/1.1, caller with an admin token",
    against: "bare Fastify route with the same bodies and no credential",
    prepare: async (fixture) => {
      const [{ url, secrets, headers }, baseline] = await Promise.all([guarded(fixture), bareRoute(fixture)]);
      const bodies = await jsonBodies(
        fixture,
        secrets.map((credential) => ({ credential })),
      );
      const load = { bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, { ...load, url: url + PATHS.verify, headers: { ...JSON_HEADERS, ...headers } }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/verify`, headers: JSON_HEADERS }),
      };
    },
  },
  {
    ...shared,
    name: "verify-grpc-guarded",
    work: "verify, cached, gRPC, caller with an admin token",
    against: "the same without a credential",
    prepare: async (fixture) => {
      const [{ url, secrets, headers }, { url: openUrl, credential }] = await Promise.all([
        guarded(fixture),
        warmService(fixture),
      ]);
      return {
        subject: await grpcLoad(fixture, url, verifyCall(secrets[0] ?? ""), headers),
        baseline: await grpcLoad(fixture, openUrl, verifyCall(credential)),
      };
    },
  },
];
