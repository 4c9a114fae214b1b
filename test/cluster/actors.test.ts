import { afterAll, beforeAll, expect, test } from "vitest";
import { updateActor } from "../../src/actors/actors.ts";
import type { KeyLookup, VerifiableRecord } from "../../src/domain/key-lookup.ts";
import { checkRateLimits } from "../../src/domain/rate-limit.ts";
import { issueKey, parseNewIssue } from "../../src/keys/issue.ts";
import { openRealNode, type RealNode } from "../support/hash-nodes.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";

let database: TestDatabase;
let nodes: readonly [RealNode, RealNode];

beforeAll(async () => {
  database = await createTestDatabase();
  nodes = [await openRealNode(database.url), await openRealNode(database.url)];
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await database.drop();
});

async function issue({ keys }: RealNode, actorId: string): Promise<KeyLookup> {
  const input = parseNewIssue(keys, { name: "n", actorId, scopes: [], metadata: {}, quotas: [], rateLimits: [] });
  const { key } = await issueKey(keys, operator, input);
  return { keyId: key.keyId, digests: [], isParent: true };
}

function setLimit({ resources: { actors } }: RealNode, actorId: string, quota: number | null) {
  const limit = { name: "all", window: "1m", enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" } as const;
  const rateLimits = checkRateLimits(quota === null ? [] : [{ ...limit, quota }], "rate_limits");
  return updateActor(actors, operator, actorId, { rateLimits });
}

function quotaOf(stored: VerifiableRecord | null): number | null {
  const [limit] = stored?.actorLimits?.limits ?? [];
  return limit === undefined || "period" in limit ? null : limit.quota;
}

/** Returns the limits by which nodes verify keys without another read; undefined: they read them again. */
function cached({ resources: { reader } }: RealNode, lookup: KeyLookup): number | null | undefined {
  const stored = reader.findKey(lookup, "default");
  return stored instanceof Promise ? undefined : quotaOf(stored);
}

const read = async ({ resources: { reader } }: RealNode, lookup: KeyLookup) =>
  quotaOf(await reader.findKey(lookup, "default"));

test("limits of an actor that one node has changed are those of all its keys on every node", async () => {
  const [a, b] = nodes;
  const [one, two, other] = [await issue(a, "shared"), await issue(b, "shared"), await issue(a, "alone")];
  for (const node of nodes) for (const lookup of [one, two, other]) await read(node, lookup);
  for (const [changing, quota] of [
    ...([
      [a, 5],
      [b, 6],
      [a, null],
      [b, 7],
    ] as const),
  ] as const) {
    await setLimit(changing, "shared", quota);
    for (const node of nodes) {
      for (const lookup of [one, two]) {
        expect(cached(node, lookup)).toBeUndefined();
        expect(await read(node, lookup)).toBe(quota);
        expect(cached(node, lookup)).toBe(quota);
      }
      expect(cached(node, other)).toBe(null);
    }
  }
});
