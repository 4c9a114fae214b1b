import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import { describe, expect, test } from "vitest";
import type { Insertion, NewKey } from "../../src/keys/ports.ts";
import { callContext } from "../../src/postgres/connection/call-context.ts";
import type { Pool } from "../../src/postgres/connection/pool.ts";
import { copyRows } from "../../src/postgres/keys/copy-rows.ts";
import { COPY_ROWS, insertKeys } from "../../src/postgres/keys/insert.ts";
import { toNewRows } from "../../src/postgres/keys/insert-rows.ts";
import { KEY_COLUMNS, type KeyRow, toApiKey } from "../../src/postgres/keys/rows.ts";
import { operator } from "../support/principal.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** Texts with a meaning in COPY, arrays or JSON (PostgreSQL docs, COPY and 8.15.6), and ordinary texts. */
const ODD = [
  "\\N",
  "\\.",
  "a\tb",
  "a\nb",
  "a\r\nb",
  "\\",
  '"',
  "'",
  "{a,b}",
  "NULL",
  "",
  " ",
  "é😀",
  "\x7f",
  "$1",
  "\\x00",
];

const insert = (pool: Pool, keys: readonly NewKey[]) => pool.run((sql) => insertKeys(sql, keys, () => undefined));

async function stored(pool: Pool) {
  const rows = await pool.run((sql) => sql<KeyRow[]>`SELECT ${sql(KEY_COLUMNS)} FROM api_keys ORDER BY key_id`);
  return rows.map(toApiKey);
}

function outcomes(insertions: readonly Insertion[]): Record<string, number> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(insertions, ({ outcome }) => outcome)).map(([name, found]) => [name, found.length]),
  );
}

test.each([1, COPY_ROWS - 1, COPY_ROWS, 1000])("%i keys with any content are stored unchanged", async (count) => {
  const { pool } = await openSchema();
  const keys = Array.from({ length: count }, (_, index) => {
    const odd = ODD[index % ODD.length] ?? "";
    const expireTime = index % 3 === 0 ? new Date("2031-02-03T04:05:06.789Z") : null;
    const requestId = index % 5 === 0 ? `${index} ${odd}` : null;
    return newKey({ name: odd, scopes: [odd, "a b", odd], metadata: { [`k${odd}`]: odd }, expireTime, requestId });
  });
  expect(await insert(pool, keys)).toEqual(keys.map(({ key }) => ({ outcome: "inserted", key })));
  expect(await stored(pool)).toEqual(keys.map(({ key }) => key));
  const secrets = await pool.run(
    (sql) => sql`
    SELECT digest, digest_key_id, request_id, request_fingerprint FROM api_keys ORDER BY key_id`,
  );
  expect(secrets.map((row) => ({ ...row }))).toEqual(
    keys.map(({ digest, request }) => ({
      digest: Buffer.from(digest.digest),
      digestKeyId: digest.keyId,
      requestId: request?.requestId ?? null,
      requestFingerprint: request === null ? null : Buffer.from(request.fingerprint),
    })),
  );
});

const CALL = callContext(operator);

test("COPY stores every odd text and reports it, and stores no rows if one conflicts", async () => {
  const { pool } = await openSchema();
  const copy = (keys: readonly NewKey[]) => pool.run((sql) => copyRows(sql, toNewRows(keys), CALL, () => undefined));
  const keys = ODD.map((odd) => newKey({ name: odd, scopes: [odd, odd], metadata: { [odd]: odd }, requestId: odd }));
  for (const key of keys) expect(await copy([key])).toBe(true);
  expect(await stored(pool)).toEqual(keys.map(({ key }) => key));
  expect(await copy([newKey(), newKey({ requestId: ODD[0] }), newKey()])).toBe(false);
  expect(await copy(Array.from({ length: 2000 }, () => newKey({ requestId: ODD[1] })))).toBe(false);
  expect(await stored(pool)).toHaveLength(ODD.length);
});

test.each([10, 500])("known keys among %i conflict, and the others are stored", async (count) => {
  const { pool } = await openSchema();
  const known = [newKey(), newKey({ requestId: "request" })];
  await insert(pool, known);
  const [first, second] = known;
  const keys = Array.from({ length: count }, () => newKey());
  const again = newKey({ requestId: "request" });
  const results = await insert(pool, [newKey({ digest: first?.digest.digest ?? Buffer.of() }), ...keys, again]);
  expect(outcomes(results)).toEqual({ raw_key_exists: 1, inserted: count, repeated: 1 });
  expect(results[0]).toEqual({ outcome: "raw_key_exists" });
  expect(results.at(-1)).toMatchObject({ outcome: "repeated", key: { keyId: second?.key.keyId } });
  expect(await stored(pool)).toHaveLength(count + 2);
});

test("a key that is already stored under its own identifier counts as stored, and only once", async () => {
  const { pool } = await openSchema();
  const keys = Array.from({ length: COPY_ROWS - 1 }, () => newKey());
  await insert(pool, keys.slice(0, 50));
  expect(outcomes(await insert(pool, keys))).toEqual({ inserted: COPY_ROWS - 1 });
  expect(await stored(pool)).toHaveLength(COPY_ROWS - 1);
});

test.each([10, 500])("%i keys are not stored if the database rejects one, and later ones are", async (count) => {
  const { pool } = await openSchema();
  const keys = Array.from({ length: count }, () => newKey());
  await expect(insert(pool, [...keys, newKey({ name: "a\0b" })])).rejects.toMatchObject({ name: "PostgresError" });
  expect(await stored(pool)).toEqual([]);
  expect(outcomes(await insert(pool, keys))).toEqual({ inserted: count });
});

interface Interruptions {
  /** Before each INSERT. */
  readonly insert: () => Promise<unknown>;
  /** Before each read of the conflicting keys. */
  readonly look: () => Promise<unknown>;
}

/** A connection with hooks for concurrent statements. */
function withInterruptions(sql: Sql, { insert, look }: Interruptions): Sql {
  const first = async (interrupt: () => Promise<unknown>, query: PromiseLike<unknown>) => {
    await interrupt();
    return query;
  };
  return new Proxy(sql, {
    apply: (target, self, parts) => {
      const query = Reflect.apply(target, self, parts);
      const text = Array.isArray(parts[0]) ? parts[0].join("") : "";
      // The INSERT is part of a statement that also identifies the server.
      if (text === "" && parts.length === 2) return first(insert, query);
      return text.includes("request_fingerprint FROM api_keys") ? first(look, query) : query;
    },
  });
}

const nothing = async () => undefined;
const insertOne = (pool: Pool, key: NewKey) => insert(pool, [key]).then(([insertion]) => insertion?.outcome);
const remove = (pool: Pool, { key }: NewKey) =>
  pool.run((sql) => sql`DELETE FROM api_keys WHERE key_id = ${key.keyId}`);

/** The cause of a conflict, and both keys. */
const CONFLICTS: readonly (readonly [what: string, make: () => readonly [stored: NewKey, again: NewKey]])[] = [
  [
    "an equal raw key",
    () => {
      const stored = newKey();
      return [stored, newKey({ digest: stored.digest.digest })];
    },
  ],
  [
    "an equal raw key of another root secret",
    () => {
      const stored = newKey({ otherDigests: [randomBytes(32)] });
      return [stored, newKey({ digest: stored.otherDigests[0]?.digest ?? Buffer.of() })];
    },
  ],
  ["a request", () => [newKey({ kind: "issued", requestId: "r" }), newKey({ kind: "issued", requestId: "r" })]],
];

describe.each(CONFLICTS)("a key that conflicts with %s", (_what, make) => {
  test.each([0, 2])("is stored when the other is deleted before it is read, and %i others with it", async (count) => {
    const { pool } = await openSchema();
    const [conflicting, again] = make();
    expect(await insertOne(pool, conflicting)).toBe("inserted");
    const keys = [...Array.from({ length: count }, () => newKey()), again];
    const look = () => remove(pool, conflicting);
    const results = await pool.run((sql) =>
      insertKeys(withInterruptions(sql, { insert: nothing, look }), keys, () => undefined),
    );
    expect(outcomes(results)).toEqual({ inserted: count + 1 });
    expect((await stored(pool)).map(({ keyId }) => keyId)).toEqual(keys.map(({ key }) => key.keyId).sort());
  });

  test("is refused when the other always exists again, and all others are stored", async () => {
    const { pool } = await openSchema();
    const [conflicting, again] = make();
    const keys = [newKey(), newKey(), again];
    const [insert, look] = [() => insertOne(pool, conflicting), () => remove(pool, conflicting)];
    const results = await pool.run((sql) =>
      insertKeys(withInterruptions(sql, { insert, look }), keys, () => undefined),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(["inserted", "inserted", "raw_key_exists"]);
    expect(await stored(pool)).toHaveLength(2);
  });
});

test("batches of the same keys in opposite orders never deadlock", async () => {
  const { pool } = await openSchema();
  for (let round = 0; round < 10; round++) {
    const digests = Array.from({ length: 300 }, () => newKey().digest.digest);
    const forth = digests.map((digest) => newKey({ digest }));
    const back = digests.toReversed().map((digest) => newKey({ digest }));
    const results = await Promise.all([forth, back].map((keys) => insert(pool, keys)));
    expect(outcomes(results.flat())).toEqual({ inserted: 300, raw_key_exists: 300 });
    expect(await stored(pool)).toHaveLength(300 * (round + 1));
  }
});

test.each([50, 300])(
  "batches of %i of the same requests in different orders all succeed after deadlocks",
  async (count) => {
    const { pool } = await openSchema();
    for (let round = 0; round < 2; round++) {
      const requestIds = Array.from({ length: count }, () => randomBytes(8).toString("hex"));
      // In the order of their digests, which are random.
      const batches = [1, 2, 3].map(() => requestIds.map((requestId) => newKey({ requestId })));
      const results = await Promise.all(batches.map((keys) => insert(pool, keys)));
      expect(outcomes(results.flat())).toEqual({ inserted: count, repeated: 2 * count });
      expect(await stored(pool)).toHaveLength(count * (round + 1));
    }
  },
);
