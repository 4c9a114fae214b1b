import { expect, test } from "vitest";
import { succeeded, table } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { addDescendants, countDescendants, type Shape } from "../support/lineage.ts";
import { issue, paths } from "../support/rest.ts";

/** Revocations of many descendants, and limits on chains of tokens. */

const suite = useGuardedService();
const { rest } = suite;

const newToken = () => issue(rest, { scopes: ["keyhold:keys.write"] });

/** Repeats the call until it is done. Returns the number of revoked descendants, and the seconds that it took. */
async function revokeAll(keyId: string) {
  const started = performance.now();
  for (let count = 0; ; ) {
    const progress = succeeded(await rest("POST", `${paths.keys}/${keyId}:revoke`, { include_descendants: true }));
    count += progress.descendant_count;
    if (progress.done) return { count, seconds: (performance.now() - started) / 1000 };
  }
}

/** Seconds per descendant, on the slowest machine. A search that walks up from each creator takes a hundred times as long. */
const BOUND = 3 / 1_000;

const MANY: readonly (readonly [count: number, shape: Shape])[] = [
  [20_000, "chain"],
  [20_000, "star"],
  [20_000, "tree"],
];

test.each(table(MANY))(
  "%i descendants in a %s are revoked in time, and cost other revocations nothing",
  {
    timeout: 240_000,
  },
  async (count, shape) => {
    const [{ keyId }, other] = [await newToken(), await newToken()];
    await addDescendants(suite.sql, keyId, count, shape);
    await addDescendants(suite.sql, other.keyId, 1);
    const unrelated = await revokeAll(other.keyId);
    expect(unrelated.count).toBe(1);
    expect(unrelated.seconds).toBeLessThan(5);
    const { count: revoked, seconds } = await revokeAll(keyId);
    expect(revoked).toBe(count);
    expect(seconds).toBeLessThan(count * BOUND);
    expect(await countDescendants(suite.sql, keyId)).toBe(0);
  },
);

test("a token with 10,000 ancestors creates no keys, and one with fewer does", { timeout: 120_000 }, async () => {
  const first = await newToken();
  const middle = await addDescendants(suite.sql, first.keyId, 9_997);
  const last = await issue(rest, { scopes: ["keyhold:keys.write"] });
  await suite.sql`UPDATE api_keys SET created_by = ${`admin-token:${middle}`} WHERE key_id = ${last.keyId}`;
  const deepest = await issue(suite.as(last.secret), { scopes: ["keyhold:keys.write"] });
  const { status, body } = await suite.as(deepest.secret)("POST", paths.issued, { name: "n", actor_id: "a" });
  expect([status, body.error.message]).toEqual([401, expect.stringContaining("more than 10000 others")]);
});
