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

function newLimiter(grantTokens: GrantTokens): Limiter {
  const start = Date.now();
  return new Limiter({
    ...{ grantTokens, returnTokens: async () => undefined, nodes: () => 1 },
    ...{ monotonic: () => Date.now() - start, clock: { now: () => Date.now() } },
  });
}

/** Presents verifications to one node each millisecond for a while, and returns its limiter after ten seconds. */
function present(limit: Limit, grantTokens: GrantTokens): Promise<Limiter> {
  return inVirtualTime(10_000, () => {
    const limiter = newLimiter(grantTokens);
    const key = { keyId: "1", keyLimits: [limit] };
    const presenting = setInterval(() => void Promise.resolve(limiter.charge(key)).catch(() => undefined), 1);
    setTimeout(() => clearInterval(presenting), 25);
    return limiter;
  });
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

const grantAll: GrantTokens = (requests) =>
  afterOneMillisecond(() => requests.map(({ wanted }) => ({ granted: wanted, level: 1 })));

test("a charge is not repeated without a pause while the database is unreachable", async () => {
  const limiter = await present(rateLimit, () =>
    afterOneMillisecond(() => {
      throw new Error("the database is unreachable");
    }),
  );
  expect(limiter.stats.statements).toBeGreaterThan(20);
  expect(limiter.stats.statements).toBeLessThan(80);
});

test("charges of many keys are not repeated without a pause either", async () => {
  const limiter = await inVirtualTime(10_000, () => {
    const limiter = newLimiter(async () => {
      throw new Error("the database is unreachable");
    });
    for (let key = 0; key < 2_000; key++) limiter.charge({ keyId: `${key}`, keyLimits: [rateLimit] });
    return limiter;
  });
  expect(limiter.stats.statements).toBeGreaterThan(20);
  expect(limiter.stats.statements).toBeLessThan(200);
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

test("a stop also charges what was spent while a statement was in flight", async () => {
  let owed = Number.NaN;
  await inVirtualTime(1_000, () => {
    const limiter = newLimiter(async (requests) => {
      // The first statement charges the first verification alone.
      if (limiter.stats.statements === 1) limiter.charge({ keyId: "1", keyLimits: [rateLimit] });
      return grantAll(requests);
    });
    limiter.charge({ keyId: "1", keyLimits: [rateLimit] });
    void limiter.flush(false);
    void limiter.flush(true).then(() => {
      owed = limiter.stats.owed;
    });
  });
  expect(owed).toBe(2);
});

test("what waits for tokens is asked about first", async () => {
  let before = Number.NaN;
  const limiter = await inVirtualTime(10_000, () => {
    const limiter = newLimiter(grantAll);
    for (let key = 0; key < 2_000; key++) limiter.charge({ keyId: `${key}`, keyLimits: [rateLimit] });
    const waiting = limiter.charge({ keyId: "waiting", keyLimits: [{ ...rateLimit, burst: 1 }] });
    void Promise.resolve(waiting).then(() => {
      before = limiter.stats.statements;
    });
    return limiter;
  });
  expect(limiter.stats.owed).toBe(2_000);
  expect(before).toBeLessThanOrEqual(5);
});

test("what waits for tokens is not behind all debts that the job charges", async () => {
  const KEYS = 2_000;
  const empty = { ...rateLimit, burst: 1 };
  let before = Number.NaN;
  const limiter = await inVirtualTime(10_000, () => {
    const limiter = newLimiter(grantAll);
    const spend = () => {
      for (let key = 0; key < KEYS; key++) limiter.charge({ keyId: `${key}`, keyLimits: [rateLimit] });
    };
    const measure = async () => {
      spend();
      await limiter.flush(false);
      // With more demand, tokens would be requested, too.
      await sleep(5_000);
      spend();
      const { statements } = limiter.stats;
      void limiter.flush(false);
      await limiter.charge({ keyId: "waiting", keyLimits: [empty] });
      before = limiter.stats.statements - statements;
    };
    void measure();
    return limiter;
  });
  expect(limiter.stats.owed).toBe(2 * KEYS);
  expect(before).toBeLessThanOrEqual(3);
});

test("with more keys than are kept, verifications wait until what was spent is charged", async () => {
  const KEYS = 60_000;
  const limiter = newLimiter(async (requests) => {
    await sleep(10);
    return grantAll(requests);
  });
  let [key, most] = [0, 0];
  const client = async () => {
    while (key < KEYS) {
      await limiter.charge({ keyId: `${key++}`, keyLimits: [rateLimit] });
      if (key % 1_000 === 0) most = Math.max(most, limiter.size);
      if (key % 100 === 0) await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: 100 }, client));
  expect(most).toBeLessThan(45_000);
});
