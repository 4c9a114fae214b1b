import { startBaseline } from "../baseline/start.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, post, times } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { stocked, verifyBodies } from "./stock.ts";

const shared = { group: "database", unit: "requests/s", judged: "ratio" } as const;

/** Work that goes to the database, against the plainest route that does. */
export const databaseScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-no-cache",
    work: "verify with no-cache",
    against: "Fastify route with one prepared SELECT of one row, same driver, pool size and load",
    prepare: async (stage) => {
      const { url, secrets, installation } = await stocked(stage);
      const baseline = await startBaseline(stage, "select", { databaseUrl: installation.databaseUrl });
      const keyIds = await times(secrets.length, async (index) => {
        const { key_id } = await post(url + PATHS.verify, { credential: secrets[index] });
        return { key_id };
      });
      const load = { headers: JSON_HEADERS, connections: CONNECTIONS };
      return {
        subject: httpLoad(stage, {
          ...load,
          url: url + PATHS.verify,
          headers: { ...JSON_HEADERS, "cache-control": "no-cache" },
          bodies: await verifyBodies(stage),
        }),
        baseline: httpLoad(stage, { ...load, url: `${baseline.url}/verify`, bodies: await jsonBodies(stage, keyIds) }),
      };
    },
  },
  {
    ...shared,
    name: "create",
    work: "create",
    against: "Fastify route with one INSERT of the same row, same driver, pool size and 64 clients",
    prepare: async (stage) => {
      const { url, installation } = await stocked(stage);
      const baseline = await startBaseline(stage, "insert", { databaseUrl: installation.databaseUrl });
      const load = { headers: JSON_HEADERS, bodies: await jsonBodies(stage, [KEY]), connections: 64 };
      return {
        subject: httpLoad(stage, { ...load, url: url + PATHS.issued }),
        baseline: httpLoad(stage, { ...load, url: `${baseline.url}/create` }),
      };
    },
  },
];
