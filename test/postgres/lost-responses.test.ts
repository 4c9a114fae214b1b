import { expect, onTestFinished, test } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { batchInserts } from "../../src/postgres/keys/batch-inserts.ts";
import { noNodes } from "../support/no-cluster.ts";
import { startCuttingProxy } from "../support/tcp-proxy.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** More than any response takes on a loaded machine, so that a call without a response is not mistaken for a failed one. */
const ANSWER_TIMEOUT = 20_000;

async function openProxy() {
  const { url, pool: direct } = await openSchema();
  const proxy = await startCuttingProxy(url);
  const options = { url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true };
  const open = () => new Pool({ ...options, answerTimeout: ANSWER_TIMEOUT });
  onTestFinished(() => void proxy.close());
  return { proxy, direct, open };
}

test.each([1, 20, 150])(
  "a connection cut at any point leaves all of %i keys stored or none, and the caller gets a result",
  async (count) => {
    const { proxy, direct, open } = await openProxy();
    const outcomes = { stored: 0, unavailable: 0 };
    for (const warm of [false, true]) {
      for (let answer = 0; ; answer++) {
        const pool = open();
        const insert = batchInserts(propagating(pool, noNodes));
        if (warm) await insert(Array.from({ length: count }, () => newKey()));
        const before = await countKeys(direct);
        proxy.cutAt(answer);
        const told = await insert(Array.from({ length: count }, () => newKey())).then(
          ({ result }) => result,
          (error: unknown) => error,
        );
        const isCut = proxy.isCut();
        proxy.cutAt(Number.POSITIVE_INFINITY);
        if (told instanceof KeyholdError) {
          expect(told).toMatchObject({ code: "DATABASE_UNAVAILABLE", message: "the database is unreachable" });
          outcomes.unavailable++;
        } else {
          expect(told).toEqual(Array.from({ length: count }, () => expect.objectContaining({ outcome: "inserted" })));
          outcomes.stored++;
        }
        const stored = (await countKeys(direct)) - before;
        expect(told instanceof KeyholdError ? [0, count] : [count]).toContain(stored);
        await pool.close();
        if (!isCut) break;
      }
    }
    expect(outcomes.stored).toBeGreaterThan(0);
    expect(outcomes.unavailable).toBeGreaterThan(1);
  },
);

async function countKeys(pool: Pool): Promise<number> {
  const [row] = await pool.run((sql) => sql<{ count: number }[]>`SELECT count(*)::int AS count FROM api_keys`);
  return row?.count ?? 0;
}
