import type { Fixture } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { get, type Json, PATHS, post, times } from "../subject/client.ts";
import { issueKeys, KEY } from "../subject/fill.ts";
import { databaseOf, install } from "../subject/installation.ts";

/** Number of updated keys, and of concurrent clients. */
const KEYS = 500;
const CLIENTS = 64;

const UPDATE = "/keyhold.v2alpha1.IssuedApiKeysService/UpdateIssuedApiKey";

/** Updates of the first key, so that every connection has prepared its statement and cached a plan. */
const FIRST_UPDATES = 2_000;

/** Updates of a table that has grown since its last ANALYZE, compared with updates before the growth. */
export const growthScenarios: readonly Scenario[] = [
  {
    name: "update-after-growth",
    group: "growth",
    work: `update, ${CLIENTS} clients, ${KEYS} keys, right after some 50,000 creates`,
    against: "the same before them",
    unit: "requests/s",
    judged: "ratio",
    rounds: 3,
    prepare: async (fixture) => {
      let before = 0;
      return {
        subject: async () => {
          const { update, grow } = await newTable(fixture);
          // Warm-up.
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

/** Creates a table that was analyzed when it had one key, and never again. Returns a load of updates and one of creates. */
async function newTable(fixture: Fixture) {
  const installation = await install(fixture);
  const { url } = installation.server;
  const owner = databaseOf(fixture, installation);
  await owner`ALTER TABLE api_keys SET (autovacuum_enabled = off)`;
  await issueKeys(url, 1);
  await owner`ANALYZE api_keys`;
  const [first] = await updates(url);
  await times(FIRST_UPDATES, () => post(url + UPDATE, first), CLIENTS);
  await issueKeys(url, KEYS);
  const load = { headers: JSON_HEADERS, connections: CLIENTS };
  return {
    update: httpLoad(fixture, { ...load, url: url + UPDATE, bodies: await jsonBodies(fixture, await updates(url)) }),
    grow: httpLoad(fixture, { ...load, url: url + PATHS.issued, bodies: await jsonBodies(fixture, [KEY]) }),
  };
}

/** Returns an update request for each key. */
async function updates(url: string): Promise<Json[]> {
  const { issued_api_keys: keys }: Json = await get(`${url}${PATHS.issued}?page_size=${KEYS}`);
  return keys.map(({ key_id }: Json) => ({ issued_api_key: { key_id, name: KEY.name } }));
}
