import type { Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, post } from "../subject/client.ts";
import { issueKeys, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";
import { bareRoute, stocked } from "./stock.ts";

const KEYS = 1000;

/** The service that asks every caller for an admin token, with keys of its own, all in its cache. */
const guarded = once(async (stage: Stage) => {
  const open = await install(stage);
  const { url } = open.server;
  const { secret } = await post(url + PATHS.issued, { name: "bench", actor_id: "bench", scopes: ["keyhold:verify"] });
  const secrets = await issueKeys(url, KEYS);
  await open.server.stop();
  const installation = await install(stage, { dataDir: open.dataDir, environment: { KEYHOLD_AUTH: "admin-token" } });
  const headers = { authorization: `Bearer ${secret}` };
  await verifyAll(installation.server.url, secrets, headers);
  return { url: installation.server.url, secrets, headers };
});

const shared = { group: "guarded", unit: "requests/s", judged: "ratio" } as const;

/** The same as without callers' credentials, with an admin token on every request: two verdicts each. */
export const guardedScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-rest-guarded",
    work: "verify, cached, REST HTTP/1.1, caller with an admin token",
    against: "bare Fastify route with the same bodies and no credential",
    prepare: async (stage) => {
      const [{ url, secrets, headers }, baseline] = await Promise.all([guarded(stage), bareRoute(stage)]);
      const bodies = await jsonBodies(
        stage,
        secrets.map((credential) => ({ credential })),
      );
      const load = { bodies, connections: CONNECTIONS };
      return {
        subject: httpLoad(stage, { ...load, url: url + PATHS.verify, headers: { ...JSON_HEADERS, ...headers } }),
        baseline: httpLoad(stage, { ...load, url: `${baseline.url}/verify`, headers: JSON_HEADERS }),
      };
    },
  },
  {
    ...shared,
    name: "verify-grpc-guarded",
    work: "verify, cached, gRPC, caller with an admin token",
    against: "the same without a credential",
    prepare: async (stage) => {
      const [{ url, secrets, headers }, { url: openUrl, credential }] = await Promise.all([
        guarded(stage),
        stocked(stage),
      ]);
      return {
        subject: await grpcLoad(stage, url, verifyCall(secrets[0] ?? ""), headers),
        baseline: await grpcLoad(stage, openUrl, verifyCall(credential)),
      };
    },
  },
];
