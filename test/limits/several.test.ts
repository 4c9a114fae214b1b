import { afterEach, expect, test, vi } from "vitest";
import type { Charge, RateLimit } from "../../src/domain/rate-limit.ts";
import { Bucket } from "../../src/limits/bucket.ts";
import { Limiter, type LimiterOptions } from "../../src/limits/limiter.ts";
import { BucketModel } from "./bucket-model.ts";

afterEach(() => void vi.restoreAllMocks());

const base: RateLimit = {
  ...{ name: "wide", quota: 100, window: 3_600_000, burst: 100 },
  ...{ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" },
};
const narrow: RateLimit = { ...base, name: "narrow", quota: 3, burst: 3 };

/** A node whose clock stands still. Without debt the database knows what was spent. */
function open(options: Partial<LimiterOptions> = {}) {
  const model = new BucketModel();
  const asked: string[] = [];
  const limiter = new Limiter({
    grantTokens: async (requests) => {
      asked.push(...requests.map(({ bucket }) => bucket));
      return requests.map((request) => model.grant(request, 0));
    },
    returnTokens: async () => undefined,
    nodes: () => null,
    monotonic: () => 0,
    clock: { now: () => 0 },
    ...options,
  });
  const charge = async (limits: readonly RateLimit[], charges?: readonly Charge[]) => {
    const { statuses, denied } = await limiter.charge({ keyId: "1", keyLimits: limits }, charges);
    return { denied: denied?.limit.name ?? null, remaining: statuses.map(({ remaining }) => remaining) };
  };
  return { limiter, charge, asked };
}

async function spendAndDeny(): Promise<number | null | undefined> {
  const { charge } = open();
  for (let count = 0; count < 3; count++) expect((await charge([base, narrow])).denied).toBeNull();
  for (let count = 0; count < 5; count++) expect((await charge([base, narrow])).denied).toBe("narrow");
  return (await charge([base], [{ name: "wide", cost: 0 }])).remaining[0];
}

test("a verification that one limit denies spends nothing of the others", async () => {
  expect(await spendAndDeny()).toBe(97);
});

test("spending before all limits are checked is noticed", async () => {
  const { admission, spend } = Bucket.prototype;
  vi.spyOn(Bucket.prototype, "spend").mockImplementation(() => undefined);
  vi.spyOn(Bucket.prototype, "admission").mockImplementation(function (this: Bucket, cost, now, nodes) {
    const result = admission.call(this, cost, now, nodes);
    if (result === "ADMITTED" && cost > 0) spend.call(this, cost, now);
    return result;
  });
  expect(await spendAndDeny()).toBeLessThan(97);
});

test("a cost of 0 reads a limit and spends nothing", async () => {
  const { charge } = open();
  const peek = [{ name: "narrow", cost: 0 }];
  for (let count = 0; count < 5; count++)
    expect(await charge([narrow], peek)).toEqual({ denied: null, remaining: [3] });
  await charge([narrow], [{ name: "narrow", cost: 3 }]);
  expect(await charge([narrow], peek)).toEqual({ denied: null, remaining: [0] });
});

test("SHADOW neither denies nor waits", async () => {
  const { limiter, charge } = open();
  const shadow: RateLimit = { ...narrow, enforcement: "SHADOW" };
  for (let count = 0; count < 10; count++)
    expect(limiter.charge({ keyId: "1", keyLimits: [shadow] })).not.toBeInstanceOf(Promise);
  await limiter.flush(false);
  const charged = limiter.charge({ keyId: "1", keyLimits: [shadow] });
  expect(charged).toMatchObject({ denied: null, statuses: [{ isExceeded: true }] });
  expect((await charge([shadow, base])).denied).toBeNull();
});

test("a limit on demand is charged only by verifications that name it", async () => {
  const { charge, asked } = open();
  const onDemand = { ...narrow, onDemand: true };
  expect((await charge([base, onDemand])).remaining).toEqual([99]);
  expect(asked).toEqual(["key/1/wide"]);
  expect((await charge([base, onDemand], [{ name: "narrow", cost: 2 }])).remaining).toEqual([98, 1]);
});

test("a cost above the burst is denied without a statement, and spends nothing", async () => {
  const { charge, asked } = open();
  expect((await charge([narrow], [{ name: "narrow", cost: 4 }])).denied).toBe("narrow");
  expect(asked).toEqual([]);
  expect((await charge([narrow], [{ name: "narrow", cost: 3 }])).denied).toBeNull();
});

test("equal limits of different objects share a bucket", async () => {
  const { charge } = open();
  for (let count = 0; count < 3; count++) expect((await charge([{ ...narrow }])).denied).toBeNull();
  expect((await charge([{ ...narrow }])).denied).toBe("narrow");
});

test("each status has the cost of the verification, admitted or not", async () => {
  const { limiter } = open();
  const costs = async (cost: number) => {
    const { statuses } = await limiter.charge({ keyId: "1", keyLimits: [base, narrow] }, [{ name: "narrow", cost }]);
    return statuses.map((status) => [status.cost, status.isExceeded]);
  };
  expect([await costs(2), await costs(9)]).toEqual([
    [
      [1, false],
      [2, false],
    ],
    [
      [1, false],
      [9, true],
    ],
  ]);
});

test.each(["DENY", "ALLOW"] as const)(
  "a limit whose tokens have expired when they arrive is not exceeded: %s",
  async (onOutage) => {
    const model = new BucketModel();
    let now = 0;
    const { limiter } = open({
      grantTokens: async (requests) => {
        now += 50;
        return requests.map((request) => model.grant(request, now));
      },
      monotonic: () => now,
    });
    const limit = { ...base, window: 1_000, onOutage };
    const charged = (async () => limiter.charge({ keyId: "1", keyLimits: [limit] }))();
    if (onOutage === "ALLOW") expect(await charged).toMatchObject({ denied: null });
    else await expect(charged).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  },
);
