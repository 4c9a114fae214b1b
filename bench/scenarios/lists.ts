import { once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { median } from "../harness/statistics.ts";
import { get, type Json, PATHS } from "../subject/client.ts";
import { installSeeded } from "../subject/seeded.ts";

const FEW = 1_000;
const MANY = 1_000_000;

/** Default page size. */
const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/** Sequential requests, since the time of one request is measured. */
const REQUESTS = 200;

/** Approximate seconds to seed a million keys, once per group. */
const SEEDING = 150;

const few = once(async (fixture) => (await installSeeded(fixture, { count: FEW })).installation.server.url);
const many = once(async (fixture) => (await installSeeded(fixture, { count: MANY })).installation.server.url);
const adverse = once(
  async (fixture) => (await installSeeded(fixture, { count: MANY, isAdverse: true })).installation.server.url,
);

const shared = {
  group: "lists",
  against: "page 1 at 1,000 keys",
  unit: "ms",
  judged: "ratio",
  long: SEEDING,
} as const;

const NONE: Subject = { keys: 0, path: PATHS.imported, seeded: adverse };
const EXPIRING = filter('expire_time > now() AND expire_time <= now() + "30d"');
const UNUSED = filter('NOT last_used_time >= now() - "90d" AND create_time < now() - "90d"');

/** Pages of lists at a million keys. */
export const listScenarios: readonly Scenario[] = [
  list("list-first", "list, page 1", async () => ""),
  list("list-deep", "list, page 10,000", async (url) => `page_token=${encodeURIComponent(await tokenOf(url, 10_000))}`),
  list("list-actor", "list, filter by the most frequent actor", async () => filter('actor_id="actor-0"')),
  list("list-actor-rare", "list, filter by the rarest actor", async () => filter('actor_id="actor-999"')),
  list("list-actor-unknown", "list, filter by an actor without keys", async () => filter('actor_id="nobody"'), {
    keys: 0,
  }),
  ...["ACTIVE", "REVOKED", "EXPIRED"].map((status) =>
    list(`list-${status.toLowerCase()}`, `list, filter by status ${status}`, async () =>
      filter(`status=KEY_STATUS_${status}`),
    ),
  ),
  list("list-both", "list of both kinds, page 1", async () => "", { path: PATHS.keys }),
  list(
    "list-actor-any",
    "list of both kinds, filter by the most frequent actor",
    async () => filter('actor_id="actor-0"'),
    {
      path: PATHS.keys,
    },
  ),
  list("list-expiring", "list of both kinds, expires within 30 days", async () => EXPIRING, { path: PATHS.keys }),
  list("list-unused", "list of both kinds, not used for 90 days", async () => UNUSED, { path: PATHS.keys }),
  list("list-expiring-oldest", "list, the oldest keys expire within 30 days", async () => EXPIRING, {
    seeded: adverse,
  }),
  list("list-unused-oldest", "list, the oldest keys were not used for 90 days", async () => UNUSED, {
    seeded: adverse,
  }),
  list("list-expiring-none", "list, no key expires within 30 days", async () => EXPIRING, NONE),
  list("list-unused-none", "list, all keys were used within 90 days", async () => UNUSED, NONE),
];

interface Subject {
  /** Number of keys in the page. */
  readonly keys?: number;
  readonly path?: string;
  readonly seeded?: typeof many;
}

function list(
  name: string,
  work: string,
  query: (url: string) => Promise<string>,
  { keys = PAGE_SIZE, path = PATHS.issued, seeded = many }: Subject = {},
): Scenario {
  return {
    ...shared,
    name,
    work: `${work}, at 1,000,000 keys`,
    prepare: async (fixture) => {
      const url = (await seeded(fixture)) + path;
      const baseline = (await few(fixture)) + PATHS.issued;
      return { subject: requestTime(`${url}?${await query(url)}`, keys), baseline: requestTime(baseline, PAGE_SIZE) };
    },
  };
}

function filter(expression: string): string {
  return `filter=${encodeURIComponent(expression)}`;
}

/** Measures the median time of a request in milliseconds. Rejects unless the page has this many keys. */
function requestTime(url: string, keys: number): Measure {
  return async () => {
    const times: number[] = [];
    for (let request = 0; request < REQUESTS; request++) {
      const start = performance.now();
      const answer: Json = await get(url);
      times.push(performance.now() - start);
      const listed = answer.issued_api_keys ?? answer.imported_api_keys ?? answer.api_keys;
      if (listed.length !== keys) throw new Error(`${url} has ${listed.length} keys`);
    }
    return median(times);
  };
}

/** Returns the token of a page; reads the pages before it with the maximum page size. */
async function tokenOf(url: string, page: number): Promise<string> {
  let token = "";
  for (let left = (page - 1) * PAGE_SIZE; left > 0; left -= MAX_PAGE_SIZE) {
    const size = Math.min(left, MAX_PAGE_SIZE);
    const answer: Json = await get(`${url}?page_size=${size}&page_token=${encodeURIComponent(token)}`);
    token = answer.next_page_token;
    if (token === "") throw new Error(`page ${page} does not exist`);
  }
  return token;
}
