import type { Scenario } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { get, type Json, PATHS, post, times } from "../subject/client.ts";
import { issueKeys, KEY } from "../subject/fill.ts";
import { databaseOf, install } from "../subject/installation.ts";

/** Keys that are updated, and clients at once. */
const KEYS = 500;
const CLIENTS = 64;

const UPDATE = "/keyhold.v2alpha1.IssuedApiKeysService/UpdateIssuedApiKey";

/** Updates of the first key: every connection prepares its statement and keeps a plan for it. */
const FIRST_UPDATES = 2_000;

/** Changes of a table that has grown since PostgreSQL analyzed it, against the same before. */
export const growthScenarios: readonly Scenario[] = [
  {
    name: "update-after-growth",
    group: "growth",
    work: `update, ${CLIENTS} clients, ${KEYS} keys, right after some 50,000 creates`,
    against: "the same before them",
    unit: "requests/s",
    judged: "ratio",
    rounds: 3,
    prepare: async (stage) => {
      let before = 0;
      return {
        subject: async () => {
          const { update, grow } = await newTable(stage);
          // The first run warms the server.
          await update();
          before = await update();
          await grow();
          return update();
        },
        baseline: async () => before,
      };
    },
  },
];

/** A table that was analyzed when it had one key, and is not again: how fast keys are updated, and what adds keys for a round. */
async function newTable(stage: Stage) {
  const installation = await install(stage);
  const { url } = installation.server;
  const owner = databaseOf(stage, installation);
  await owner`ALTER TABLE api_keys SET (autovacuum_enabled = off)`;
  await issueKeys(url, 1);
  await owner`ANALYZE api_keys`;
  const [first] = await updates(url);
  await times(FIRST_UPDATES, () => post(url + UPDATE, first), CLIENTS);
  await issueKeys(url, KEYS);
  const load = { headers: JSON_HEADERS, connections: CLIENTS };
  return {
    update: httpLoad(stage, { ...load, url: url + UPDATE, bodies: await jsonBodies(stage, await updates(url)) }),
    grow: httpLoad(stage, { ...load, url: url + PATHS.issued, bodies: await jsonBodies(stage, [KEY]) }),
  };
}

/** An update of each key. */
async function updates(url: string): Promise<Json[]> {
  const { issued_api_keys: keys }: Json = await get(`${url}${PATHS.issued}?page_size=${KEYS}`);
  return keys.map(({ key_id }: Json) => ({ issued_api_key: { key_id, name: KEY.name } }));
}
