import { afterEach, expect, test, vi } from "vitest";
import { Bucket } from "../../src/limits/bucket.ts";
import type { Grant, GrantTokens } from "../../src/limits/grants.ts";
import type { LimiterOptions } from "../../src/limits/limiter.ts";
import { run, type Scenario } from "./scenario.ts";
import type { Mutation, Node } from "./simulation.ts";

afterEach(() => void vi.restoreAllMocks());

const limit = {
  name: "requests",
  ...{ quota: 200, window: 1_000, burst: 200 },
  ...({ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" } as const),
};
const base: Scenario = { seed: 0, nodes: 4, limit, delay: 3, failures: 0, shape: "STEADY", excess: 5, events: [] };
const large = { ...limit, quota: 60, window: 60_000, burst: 1_000 };
/** Debt is spent before it is charged. */
const flood = { limit: large, nodes: 16, delay: 300, excess: 20 };
const SEEDS = [1, 2, 3, 4, 5, 6];

/** Checks that the bound holds without a mutation, and that it does not hold in a run with it. */
async function expectCaught(fields: Partial<Scenario>, mutation?: Mutation, mutate = () => {}): Promise<void> {
  const excess = async (seed: number, mutated?: Mutation) => (await run({ ...base, ...fields, seed }, mutated)).excess;
  expect(await excess(1)).toBeLessThanOrEqual(1e-6);
  mutate();
  let most = Number.NEGATIVE_INFINITY;
  for (const seed of SEEDS) {
    most = Math.max(most, await excess(seed, mutation));
    if (most > 1e-6) return;
  }
  expect(most).toBeGreaterThan(1e-6);
}

/** Replaces the end of leases: they begin at the time that `begin` returns. */
function leaseFrom(begin: (sent: number, now: number) => number): void {
  const { take } = Bucket.prototype;
  vi.spyOn(Bucket.prototype, "take").mockImplementation(function (this: Bucket, grant, requested, sent, now) {
    take.call(this, grant, { ...requested, wanted: 0, owed: 0 }, begin(sent, now), now);
    const rest = { ...requested, wanted: requested.wanted - grant.granted };
    take.call(this, { ...grant, granted: 0 }, rest, sent, now);
  });
}

test("leases that do not expire", async () => {
  await expectCaught({ shape: "BURSTS", nodes: 16, excess: 3 }, {}, () => leaseFrom(() => 1e12));
});

test("leases that expire after the answer instead of the request", async () => {
  await expectCaught({ delay: 600, excess: 1.5 }, {}, () => leaseFrom((_, now) => now));
});

const mutations: Record<string, { fields: Partial<Scenario>; mutation: Mutation }> = {
  "tokens that are refunded, because they are not spent yet": {
    fields: { excess: 1.5 },
    mutation: { options: refunding },
  },
  "a grant that is used again after a failure": { fields: { failures: 30 }, mutation: { options: repeating } },
  "debt beyond that of a node, which crashes": {
    fields: { ...flood, events: repeated("CRASH", 12) },
    mutation: { options: withNodes((known) => (known === null ? null : known / 16)) },
  },
  "nodes that do not know of each other": {
    fields: flood,
    mutation: { options: withNodes(() => 1) },
  },
  "debt of a node that joins, before the others know of it": {
    fields: { ...flood, nodes: 1, events: repeated("JOIN", 15) },
    mutation: { options: withNodes((known) => known ?? 1) },
  },
  "a clock of the database that is trusted when it steps back": {
    fields: { limit: large, events: repeated("BACK", 1) },
    mutation: { elapsed: Math.abs },
  },
};

test.for(Object.entries(mutations))("%s", async ([, { fields, mutation }]) => {
  await expectCaught(fields, mutation);
});

function repeated(type: Scenario["events"][number]["type"], times: number): Scenario["events"] {
  return Array.from({ length: times }, (_, index) => ({ time: 4_000 + 10 * index, type, length: 300 }));
}

function withNodes(count: (known: number | null) => number | null) {
  return (options: LimiterOptions): LimiterOptions => ({ ...options, nodes: () => count(options.nodes()) });
}

function refunding(options: LimiterOptions, node: Node): LimiterOptions {
  let granted = 0;
  const grantTokens: GrantTokens = async (requests) => {
    const refund = Math.max(0, granted - node.admitted);
    const grants = await options.grantTokens(requests.map((one) => ({ ...one, owed: one.owed - refund })));
    for (const grant of grants) granted += grant.granted;
    return grants;
  };
  return { ...options, grantTokens };
}

function repeating(options: LimiterOptions): LimiterOptions {
  let last: readonly Grant[] | undefined;
  const grantTokens: GrantTokens = async (requests) => {
    try {
      last = await options.grantTokens(requests);
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
  return { ...options, grantTokens };
}
