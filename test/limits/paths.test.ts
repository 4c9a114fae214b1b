import { expect, test } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import { BucketModel } from "./bucket-model.ts";

const limit: RateLimit = {
  ...{ name: "requests", quota: 100, window: 3_600_000, burst: 100 },
  ...{ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" },
};
const key = { keyId: "1", keyLimits: [limit] };

/** A node, and its statements, which take effect when they are asked to. */
function open(nodes: number | null) {
  const model = new BucketModel();
  const pending: (() => void)[] = [];
  const limiter = new Limiter({
    grantTokens: (requests) =>
      new Promise((resolve) => pending.push(() => resolve(requests.map((request) => model.grant(request, 0))))),
    returnTokens: async () => undefined,
    ...{ nodes: () => nodes, monotonic: () => 0, clock: { now: () => 0 } },
  });
  /** Resolves when every statement has been answered. */
  const answer = async () => {
    const flushed = limiter.flush(false);
    while (pending.length > 0) pending.shift()?.();
    await flushed;
  };
  return { limiter, pending, answer };
}

test("without debt, the first verification waits for a statement", async () => {
  const { limiter, answer } = open(null);
  const waiting = limiter.charge(key);
  expect(waiting).toBeInstanceOf(Promise);
  await new Promise(setImmediate);
  await answer();
  expect(await waiting).toMatchObject({ denied: null });
});

test("debt, leased tokens and denials are answered without waiting for a statement", async () => {
  const { limiter, pending, answer } = open(1);
  // The debt of one node is 5 % of half the burst.
  for (let count = 0; count < 2; count++) expect(limiter.charge(key)).toMatchObject({ denied: null });
  expect(pending).toEqual([]);
  await answer();
  const waiting = limiter.charge(key, [{ name: "requests", cost: 90 }]);
  expect(waiting).toBeInstanceOf(Promise);
  await new Promise(setImmediate);
  await answer();
  expect(await waiting).toMatchObject({ denied: null });
  const { statements } = limiter.stats;
  const charged = Array.from({ length: 10_000 }, () => limiter.charge(key));
  expect(charged.some((result) => result instanceof Promise)).toBe(false);
  expect((await Promise.all(charged)).filter(({ denied }) => denied === null).length).toBe(8);
  expect([limiter.stats.statements, pending.length]).toEqual([statements, 0]);
});
