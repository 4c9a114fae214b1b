import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { BATCH_SIZE, batchesOf } from "../subject/fill.ts";
import { verifyBodies, warmService } from "./warm-service.ts";

/** Enough to keep the server busy, since one request takes milliseconds. */
const BATCH_CONNECTIONS = 4;

export const batchScenarios: readonly Scenario[] = [
  {
    name: "batch-verify",
    group: "verify",
    work: `batchVerify of ${BATCH_SIZE} cached, per credential`,
    against: "single cached verify over REST",
    unit: "credentials/s",
    judged: "ratio",
    prepare: async (fixture) => {
      const { url, secrets } = await warmService(fixture);
      const load = { headers: JSON_HEADERS, connections: CONNECTIONS };
      const batch = { ...load, connections: BATCH_CONNECTIONS, bodies: await jsonBodies(fixture, batchesOf(secrets)) };
      const batches = httpLoad(fixture, { ...batch, url: url + PATHS.batchVerify });
      return {
        subject: async () => (await batches()) * BATCH_SIZE,
        baseline: httpLoad(fixture, { ...load, bodies: await verifyBodies(fixture), url: url + PATHS.verify }),
      };
    },
  },
];
