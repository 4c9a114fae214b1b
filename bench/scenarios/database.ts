import { startBaseline } from "../baseline/start.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, post, times } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { verifyBodies, warmService } from "./warm-service.ts";

const shared = { group: "database", unit: "requests/s", judged: "ratio" } as const;

/** Calls that access the database, compared with a minimal route that does. */
export const databaseScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-no-cache",
    work: "verify with no-cache",
    against: "Fastify route with one prepared SELECT of one row, same driver, pool size and load",
    prepare: async (fixture) => {
      const { url, secrets, installation } = await warmService(fixture);
      const baseline = await startBaseline(fixture, "select", { databaseUrl: installation.databaseUrl });
      const keyIds = await times(secrets.length, async (index) => {
        const { key_id } = await post(url + PATHS.verify, { credential: secrets[index] });
        return { key_id };
      });
      const load = { headers: JSON_HEADERS, connections: CONNECTIONS };
      return {
        subject: httpLoad(fixture, {
          ...load,
          url: url + PATHS.verify,
          headers: { ...JSON_HEADERS, "cache-control": "no-cache" },
          bodies: await verifyBodies(fixture),
        }),
        baseline: httpLoad(fixture, {
          ...load,
          url: `${baseline.url}/verify`,
          bodies: await jsonBodies(fixture, keyIds),
        }),
      };
    },
  },
  {
    ...shared,
    name: "create",
    work: "create",
    against: "Fastify route with one INSERT of the same row, same driver, pool size and 64 clients",
    prepare: async (fixture) => {
      const { url, installation } = await warmService(fixture);
      const baseline = await startBaseline(fixture, "insert", { databaseUrl: installation.databaseUrl });
      const load = { headers: JSON_HEADERS, bodies: await jsonBodies(fixture, [KEY]), connections: 64 };
      return {
        subject: httpLoad(fixture, { ...load, url: url + PATHS.issued }),
        baseline: httpLoad(fixture, { ...load, url: `${baseline.url}/create` }),
      };
    },
  },
];
