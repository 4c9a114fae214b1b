import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import type { KeyKind } from "../../src/domain/key.ts";
import type { Insertion, NewKey } from "../../src/keys/ports.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import type { Database } from "../../src/postgres/connection/pool.ts";
import { batchInserts } from "../../src/postgres/keys/batch-inserts.ts";
import { noNodes } from "../support/no-cluster.ts";
import { type Seeded, seededBy } from "../support/seeded.ts";
import { newKey, openSchema } from "./new-keys.ts";

const seeded = seededBy("KEYHOLD_INSERT_SEED");

/** A character that text columns reject (PostgreSQL docs, 8.3). */
const BAD_NAME = "a\0b";

/** An insertion with its key; `refused` where the database rejects the row. */
type Outcome =
  | `inserted ${string}`
  | `repeated ${string}`
  | Exclude<Insertion["outcome"], "inserted" | "repeated">
  | "refused";

interface Call {
  readonly key: NewKey;
  readonly outcome: Outcome;
}

function outcomeOf(insertion: Insertion | undefined): Outcome {
  if (insertion === undefined) throw new Error("an insertion had no result");
  return "key" in insertion ? `${insertion.outcome} ${insertion.key.keyId}` : insertion.outcome;
}

function callAll(keys: readonly NewKey[], databases: readonly Database[]): Promise<Call[]> {
  const stores = databases.map((database) => batchInserts(propagating(database, noNodes)));
  const calls = keys.map(async (key, index): Promise<Call> => {
    const insert = stores[index % stores.length];
    const found = await insert?.([key]).catch((error: unknown) => {
      expect(error).toMatchObject({ name: "PostgresError" });
      return "refused" as const;
    });
    return { key, outcome: found === "refused" ? found : outcomeOf(found?.result[0]) };
  });
  return Promise.all(calls);
}

/** The sequential model, in memory. */
function serialModel(): (key: NewKey) => Outcome {
  const stored = new Map<string, string>();
  return (key) => {
    if (key.key.name === BAD_NAME) return "refused";
    const [request, rawKey] = [requestOf(key), rawKeyOf(key)];
    const repeated = request === null ? undefined : stored.get(request);
    if (repeated !== undefined) return `repeated ${repeated}`;
    if (rawKey !== null && stored.has(rawKey)) return "raw_key_exists";
    for (const name of [request, rawKey]) if (name !== null) stored.set(name, key.key.keyId);
    return `inserted ${key.key.keyId}`;
  };
}

const requestOf = ({ key, request }: NewKey) => (request === null ? null : `${key.kind} request ${request.requestId}`);
/** By its least digest, for any current root secret. */
const rawKeyOf = ({ key, digest, otherDigests }: NewKey) => {
  const [least] = [digest, ...otherDigests].map((one) => Buffer.from(one.digest).toString("hex")).sort();
  return key.kind === "imported" ? `raw key ${least}` : null;
};

/** The same key as stored by a server with another current root secret. */
function underAnother({ digest, otherDigests: [other, ...rest], ...key }: NewKey): NewKey {
  return { ...key, digest: other ?? digest, otherDigests: other === undefined ? [] : [digest, ...rest] };
}

/**
 * Returns the calls in a sequential order that explains their outcomes: a stored key comes before those that conflict with
 * it, and after those of its request that conflict with another's raw key.
 */
function explain(calls: readonly Call[]): Call[] {
  const isStored = ({ outcome }: Call) => outcome.startsWith("inserted");
  const owner = (name: string | null, of: (key: NewKey) => string | null) =>
    name === null ? undefined : calls.find((call) => isStored(call) && of(call.key) === name);
  const after = new Map<Call, Call[]>(calls.map((call) => [call, []]));
  for (const call of calls) {
    if (isStored(call) || call.outcome === "refused") continue;
    const byRequest = owner(requestOf(call.key), requestOf);
    const met = call.outcome === "raw_key_exists" ? owner(rawKeyOf(call.key), rawKeyOf) : byRequest;
    if (met !== undefined) after.get(call)?.push(met);
    if (call.outcome === "raw_key_exists" && byRequest !== undefined) after.get(byRequest)?.push(call);
  }
  const order: Call[] = [];
  const visit = (call: Call, path: readonly Call[]) => {
    if (path.includes(call)) throw new Error(`no order explains ${path.map((one) => one.outcome).join(", ")}`);
    if (order.includes(call)) return;
    for (const earlier of after.get(call) ?? []) visit(earlier, [...path, call]);
    order.push(call);
  };
  for (const call of calls) visit(call, []);
  return order;
}

/** Keys with duplicates, and at least one of each kind of outcome. Raw keys have a digest for each root secret. */
function randomKeys(random: Seeded, count: number, roots: number): NewKey[] {
  const newDigests = () => {
    const [digest = Buffer.of(), ...otherDigests] = Array.from({ length: roots }, () => randomBytes(32));
    return { digest, otherDigests };
  };
  const digests = Array.from({ length: count / 3 }, newDigests);
  const requestIds = Array.from({ length: count / 6 }, () => randomBytes(8).toString("hex"));
  const keys = Array.from({ length: count }, () => {
    // A key that the database rejects has no duplicate, since chance would decide between rejection and conflict.
    if (random.below(40) === 0) return newKey({ name: BAD_NAME });
    return newKey({
      kind: random.pick<KeyKind>(["imported", "imported", "issued"]),
      ...(random.below(2) === 0 ? random.pick(digests) : newDigests()),
      requestId: random.below(3) === 0 ? random.pick(requestIds) : null,
    });
  });
  const [twice, requestId] = [newDigests(), randomBytes(8).toString("hex")];
  const certain = [twice, twice, { requestId }, { requestId }, { name: BAD_NAME }].map((one) => newKey(one));
  const all = random.shuffled([...keys, ...certain]);
  return roots === 1 ? all : all.map((key, index) => (index % 2 === 0 ? key : underAnother(key)));
}

test.each([
  [1, 1],
  [2, 1],
  [2, 2],
])(
  "%i servers with %i current root secrets answer hundreds of concurrent insertions as if sequential",
  async (servers, roots) => {
    const { pool } = await openSchema();
    const random = seeded.fork();
    for (let round = 0; round < 5; round++) {
      const keys = randomKeys(random, 300, roots);
      const calls = await callAll(
        keys,
        Array.from({ length: servers }, () => pool),
      );
      const model = serialModel();
      for (const { key, outcome } of explain(calls)) expect(model(key)).toBe(outcome);
      const inserted = calls.flatMap(({ outcome }) => (outcome.startsWith("inserted ") ? outcome.slice(9) : []));
      const rows = await pool.run((sql) => sql<{ keyId: string }[]>`DELETE FROM api_keys RETURNING key_id`);
      expect(rows.map((row) => row.keyId).sort()).toEqual(inserted.sort());
      for (const kind of ["inserted", "repeated", "raw_key_exists", "refused"])
        expect(calls.some(({ outcome }) => outcome.startsWith(kind))).toBe(true);
    }
  },
);

test("500 concurrent keys need few commits", async () => {
  const { pool } = await openSchema();
  const calls = await callAll(
    Array.from({ length: 500 }, () => newKey({ kind: "issued" })),
    [pool],
  );
  expect(calls.every(({ key, outcome }) => outcome === `inserted ${key.key.keyId}`)).toBe(true);
  const commits = await pool.run((sql) => sql`SELECT count(DISTINCT xmin::text)::int AS count FROM api_keys`);
  expect(commits[0]?.count).toBeLessThanOrEqual(10);
});

test("a key stored under a retired server key conflicts in any batch", async () => {
  const { pool } = await openSchema();
  const insert = batchInserts(propagating(pool, noNodes));
  const old = newKey();
  await insert([old]);
  const again = Array.from({ length: 20 }, () => newKey({ otherDigests: [randomBytes(32), old.digest.digest] }));
  const calls = await callAll([...again, newKey({ otherDigests: [randomBytes(32)] })], [pool]);
  expect(calls.slice(0, 20).every(({ outcome }) => outcome === "raw_key_exists")).toBe(true);
  expect(calls[20]?.outcome).toMatch(/^inserted/);
});

test("an unreachable database fails every call", async () => {
  const { pool } = await openSchema();
  await pool.run((sql) => sql`SELECT 1`);
  await pool.close();
  const insert = batchInserts(propagating(pool, noNodes));
  const results = await Promise.allSettled(Array.from({ length: 50 }, () => insert([newKey()])));
  for (const one of results) expect(one).toMatchObject({ reason: { code: "DATABASE_UNAVAILABLE" } });
});
