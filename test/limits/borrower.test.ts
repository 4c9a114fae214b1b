import { expect, test } from "vitest";
import type { Limit } from "../../src/domain/rate-limit.ts";
import type { GrantTokens } from "../../src/limits/grants.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import { inVirtualTime } from "./simulation.ts";

const rateLimit: Limit = {
  ...{ name: "requests", quota: 1_000, window: 60_000, burst: 1_000 },
  ...{ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" },
};
const quota: Limit = { name: "requests", limit: 1_000_000, period: "DAY", anchorTime: 0, adjustTime: null };

/** Presents verifications to one node each millisecond for a while, and returns its limiter after ten seconds. */
function present(limit: Limit, grantTokens: GrantTokens): Promise<Limiter> {
  return inVirtualTime(10_000, () => {
    const start = Date.now();
    const limiter = new Limiter({
      ...{ grantTokens, returnTokens: async () => undefined, nodes: () => 1 },
      ...{ monotonic: () => Date.now() - start, clock: { now: () => Date.now() } },
    });
    const key = { keyId: "1", keyLimits: [limit] };
    const presenting = setInterval(() => void Promise.resolve(limiter.charge(key)).catch(() => undefined), 1);
    setTimeout(() => clearInterval(presenting), 25);
    return limiter;
  });
}

function afterOneMillisecond<T>(result: () => T): Promise<T> {
  return new Promise((resolve, reject) =>
    setTimeout(() => {
      try {
        resolve(result());
      } catch (error) {
        reject(error);
      }
    }, 1),
  );
}

test("a charge is not repeated without a pause while the database is unreachable", async () => {
  const limiter = await present(rateLimit, () =>
    afterOneMillisecond(() => {
      throw new Error("the database is unreachable");
    }),
  );
  expect(limiter.stats.statements).toBeGreaterThan(20);
  expect(limiter.stats.statements).toBeLessThan(80);
});

test("tokens of a quota that are not spent are not requested again", async () => {
  const reset = { time: 1e15, after: 86_400_000 };
  let level = 0;
  const limiter = await present(quota, (requests) =>
    afterOneMillisecond(() =>
      requests.map(({ wanted }) => {
        level += wanted;
        return { granted: wanted, level, reset };
      }),
    ),
  );
  expect(limiter.stats.statements).toBeLessThan(20);
});
