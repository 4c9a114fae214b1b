import { randomUUID } from "node:crypto";
import { addDescendants, type Shape } from "../../test/support/lineage.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { percentile, wrk } from "../load/wrk.ts";
import { type Json, PATHS, post } from "../subject/client.ts";
import { issueKeys } from "../subject/fill.ts";
import { databaseOf, install } from "../subject/installation.ts";
import { installSeeded } from "../subject/seeded.ts";

/** Keys to revoke; those that are seeded as revoked come in addition. */
const KEYS = 100_000;

/** Keys of the other callers, which are not revoked. */
const VERIFIED = { count: 100, actor: "other-callers" } as const;
const FILTER = `actor_id != "${VERIFIED.actor}"`;
const CONNECTIONS = 8;
const DESCENDANTS = 100_000;
const SHAPES: readonly Shape[] = ["chain", "star", "tree"];

const seeded = (count: number) => async (fixture: Fixture) =>
  (await installSeeded(fixture, { count })).installation.server.url;

const withKeysToRevoke = once(seeded(KEYS));
/** As many as can be revoked in all rounds. */
const withManyKeys = once(seeded(2 * KEYS));

const withDatabase = once(async (fixture: Fixture) => {
  const installation = await install(fixture);
  return { sql: databaseOf(fixture, installation), url: installation.server.url };
});

const bulkRevoke = (url: string, body: object, signal?: AbortSignal): Promise<Json> =>
  post(`${url}${PATHS.keys}:bulkRevoke`, { filter: FILTER, ...body }, {}, signal);

/** Returns keys per second. */
export async function revokeAll(url: string): Promise<number> {
  const started = performance.now();
  const request_id = randomUUID();
  for (;;) {
    const { done, changed_count } = await bulkRevoke(url, { request_id });
    if (done) return changed_count / ((performance.now() - started) / 1000);
  }
}

/** Revokes keys until the signal; the server ends the call when the client has disconnected. */
async function revokeUntil(url: string, signal: AbortSignal): Promise<void> {
  const request_id = randomUUID();
  try {
    while (!(await bulkRevoke(url, { request_id }, signal)).done);
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  throw new Error("all keys were revoked before the end of the round");
}

/** Creates an admin token with descendants and revokes them. Returns descendants per second, without their creation. */
async function revokeDescendants(fixture: Fixture, shape: Shape): Promise<number> {
  const { sql, url } = await withDatabase(fixture);
  const token = { name: "a token", actor_id: "creator", scopes: ["keyhold:keys.write"] };
  const { key_id } = (await post(url + PATHS.issued, token)).issued_api_key;
  await addDescendants(sql, key_id, DESCENDANTS, shape);
  const started = performance.now();
  for (let revoked = 0; ; ) {
    const body = { include_descendants: true };
    const { done, descendant_count } = await post(`${url}${PATHS.keys}/${key_id}:revoke`, body);
    revoked += descendant_count;
    if (done && revoked === DESCENDANTS) return revoked / ((performance.now() - started) / 1000);
    if (done) throw new Error(`revoked ${revoked} of ${DESCENDANTS} descendants`);
  }
}

/** Measures the p99 of verify in milliseconds. */
export async function verifyTime(fixture: Fixture, url: string): Promise<Measure> {
  const key = { name: "a key", actor_id: VERIFIED.actor, scopes: ["read"] };
  const secrets = await issueKeys(url, VERIFIED.count, {}, key);
  const bodies = await jsonBodies(
    fixture,
    secrets.map((credential) => ({ credential })),
  );
  const load = { url: url + PATHS.verify, headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
  return async () => percentile("p99")(await wrk(fixture, load));
}

export const bulkScenarios: readonly Scenario[] = [
  {
    name: "bulk-revoke",
    group: "bulk",
    work: `bulkRevoke of ${KEYS.toLocaleString("en-GB")} keys`,
    against: "absolute; includes the count",
    unit: "keys/s",
    judged: "value",
    long: 60,
    rounds: 1,
    prepare: async (fixture) => {
      const url = await withKeysToRevoke(fixture);
      return { subject: () => revokeAll(url), baseline: null };
    },
  },
  {
    name: "bulk-verify-p99",
    group: "bulk",
    work: `p99 of verify by ${CONNECTIONS} connections while a bulkRevoke runs`,
    against: "the same without",
    unit: "ms",
    judged: "ratio",
    long: 120,
    needs: ["wrk"],
    prepare: async (fixture) => {
      const url = await withManyKeys(fixture);
      const verify = await verifyTime(fixture, url);
      return {
        subject: async () => {
          const end = new AbortController();
          const revoking = revokeUntil(url, end.signal);
          const p99 = await Promise.race([verify(), revoking.then(() => Number.NaN)]);
          end.abort();
          await revoking;
          return p99;
        },
        baseline: verify,
      };
    },
  },
  ...SHAPES.map(
    (shape): Scenario => ({
      name: `revoke-${shape}`,
      group: "bulk",
      work: `revocation of ${DESCENDANTS.toLocaleString("en-GB")} descendants in a ${shape}`,
      against: "absolute; includes the searches and counts",
      unit: "keys/s",
      judged: "value",
      long: 60,
      rounds: 1,
      prepare: async (fixture) => ({ subject: () => revokeDescendants(fixture, shape), baseline: null }),
    }),
  ),
];
