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
const DEEP = 10_000;

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

/** The keys that expire within 30 days, or were not used for 90 days, in the order of that time. */
const EXPIRING = ordered("expire_time", 'expire_time > now() AND expire_time <= now() + "30d"');
const UNUSED = ordered("last_used_time", 'NOT last_used_time >= now() - "90d" AND create_time < now() - "90d"');

/** Lists with enough keys for page 10,000, which a thousand keys fill a page of too. */
const NOT_EXPIRED = ordered("expire_time", "NOT expire_time <= now()");
const NOT_USED = ordered("last_used_time", 'NOT last_used_time >= now() - "30d"');
const BY_NAME = "order_by=name";

/** Pages of lists at a million keys. */
export const listScenarios: readonly Scenario[] = [
  list("list-first", "list, page 1"),
  list("list-deep", "list, page 10,000", "", { page: DEEP }),
  list("list-actor", "list, filter by the most frequent actor", filter('actor_id="actor-0"')),
  list("list-actor-rare", "list, filter by the rarest actor", filter('actor_id="actor-999"')),
  list("list-actor-unknown", "list, filter by an actor without keys", filter('actor_id="nobody"'), {
    keys: 0,
  }),
  ...["ACTIVE", "REVOKED", "EXPIRED"].map((status) =>
    list(`list-${status.toLowerCase()}`, `list, filter by status ${status}`, filter(`status=KEY_STATUS_${status}`)),
  ),
  list("list-both", "list of both kinds, page 1", "", { path: PATHS.keys }),
  list("list-actor-any", "list of both kinds, filter by the most frequent actor", filter('actor_id="actor-0"'), {
    path: PATHS.keys,
  }),
  list("list-expiring", "list of both kinds, expires within 30 days", EXPIRING, { path: PATHS.keys }),
  list("list-unused", "list of both kinds, not used for 90 days", UNUSED, { path: PATHS.keys }),
  list("list-expiring-oldest", "list, the oldest keys expire within 30 days", EXPIRING, { seeded: adverse }),
  list("list-unused-oldest", "list, the oldest keys were not used for 90 days", UNUSED, { seeded: adverse }),
  list("list-expiring-none", "list, no key expires within 30 days", EXPIRING, NONE),
  list("list-unused-none", "list, all keys were used within 90 days", UNUSED, NONE),
  ...orderedPages("list-by-expiry", "list of both kinds by expiry, without the expired keys", NOT_EXPIRED),
  ...orderedPages("list-by-use", "list of both kinds by last use, without those used in 30 days", NOT_USED),
  ...orderedPages("list-by-name", "list of both kinds by name", BY_NAME),
];

/** Page 1 and page 10,000 of a list, compared with page 1 of the same list at 1,000 keys. */
function orderedPages(name: string, work: string, query: string): readonly Scenario[] {
  const subject = { path: PATHS.keys, baseline: `${PATHS.keys}?${query}` };
  return [
    list(`${name}-first`, `${work}, page 1`, query, subject),
    list(`${name}-deep`, `${work}, page 10,000`, query, { ...subject, page: DEEP }),
  ];
}

interface Subject {
  /** Number of keys in the page. */
  readonly keys?: number;
  readonly path?: string;
  readonly seeded?: typeof many;
  readonly page?: number;
  /** What is listed at 1,000 keys. */
  readonly baseline?: string;
}

function list(
  name: string,
  work: string,
  query = "",
  { keys = PAGE_SIZE, path = PATHS.issued, seeded = many, page = 1, baseline = PATHS.issued }: Subject = {},
): Scenario {
  return {
    ...shared,
    name,
    work: `${work}, at 1,000,000 keys`,
    prepare: async (fixture) => {
      const url = `${await seeded(fixture)}${path}?${query}`;
      const token = await tokenOf(url, page);
      return {
        subject: requestTime(`${url}&page_token=${encodeURIComponent(token)}`, keys),
        baseline: requestTime((await few(fixture)) + baseline, PAGE_SIZE),
      };
    },
  };
}

function filter(expression: string): string {
  return `filter=${encodeURIComponent(expression)}`;
}

function ordered(orderBy: string, expression: string): string {
  return `order_by=${encodeURIComponent(orderBy)}&${filter(expression)}`;
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
    const answer: Json = await get(`${url}&page_size=${size}&page_token=${encodeURIComponent(token)}`);
    token = answer.next_page_token;
    if (token === "") throw new Error(`page ${page} does not exist`);
  }
  return token;
}
