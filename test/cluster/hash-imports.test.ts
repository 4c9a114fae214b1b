import { createHash, createHmac, randomBytes, scryptSync } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import type { ApiKey } from "../../src/domain/key.ts";
import { createHmacKey, deleteHmacKey, listHmacKeys } from "../../src/hashing/hmac-keys.ts";
import { parseHmacKey } from "../../src/hashing/input/hmac-key.ts";
import { importKey, importKeys, type NewImportInput, parseNewImport } from "../../src/keys/import.ts";
import { revokeKey } from "../../src/keys/revoke.ts";
import { openRealNode, type RealNode } from "../support/hash-nodes.ts";
import { eventually } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { atOnce } from "../support/races.ts";
import { ROOT_SECRET } from "../support/server.ts";

let database: TestDatabase;
let sql: postgres.Sql;
let nodes: readonly [RealNode, RealNode, RealNode];

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 4, onnotice: () => {} });
  const open = (environment?: Record<string, string>) => openRealNode(database.url, environment);
  // The last one has no cache.
  nodes = [await open(), await open(), await open({ KEYHOLD_CACHE_SIZE: "0" })];
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await sql.end();
  await database.drop();
});

const newRawKey = () => `${randomBytes(8).toString("hex")}-of-another-service`;

type Hashed = Partial<Pick<NewImportInput, "rawKey" | "rawKeyHash" | "lookupPrefix">>;

const sha256 = (rawKey: string, prefix = ""): Hashed => {
  const value = createHash("sha256")
    .update(prefix + rawKey)
    .digest("hex");
  return { rawKeyHash: { algorithm: "SHA256", value, encoding: "HEX", prefix } };
};

const scrypt = (rawKey: string, length = 16): Hashed => {
  const salt = randomBytes(16);
  const output = scryptSync(rawKey, salt, 32, { N: 1024, r: 8, p: 1 });
  const [first, second] = [salt, output].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return { rawKeyHash: { phc: `$scrypt$ln=10,r=8,p=1$${first}$${second}` }, lookupPrefix: rawKey.slice(0, length) };
};

const KINDS = { fast: sha256, slow: scrypt } as const;

const inputOf = (hashed: Hashed, more: Partial<NewImportInput> = {}): NewImportInput => ({
  ...{ rawKey: "", name: "hashed", actorId: "actor_1", scopes: ["read"], metadata: {} },
  ...hashed,
  ...more,
});

const importBy = async ({ keys }: RealNode, hashed: Hashed, more?: Partial<NewImportInput>) =>
  importKey(keys, operator, parseNewImport(keys, inputOf(hashed, more)));

const outcomeOf = async ({ api }: RealNode, rawKey: string) => {
  const verdict = await api.verify(operator, rawKey);
  return verdict.valid ? `VALID ${verdict.key.keyId}` : verdict.reason;
};

const everywhere = async (rawKey: string) =>
  [...new Set(await Promise.all(nodes.map((node) => outcomeOf(node, rawKey))))].join();

const isAdopted = async (keyId: string) => {
  const [row] = await sql`SELECT hash_algorithm FROM api_keys WHERE key_id = ${keyId}`;
  return row?.hash_algorithm === null;
};

/** What is new is not removed. */
async function age(): Promise<void> {
  await sql`UPDATE hash_schemes SET create_time = '2026-01-01'`;
  await sql`UPDATE hash_prefix_lengths SET create_time = '2026-01-01'`;
}

async function forget(): Promise<void> {
  await sql`DELETE FROM api_keys`;
  await age();
  await nodes[0].resources.hashing.removeUnused();
  expect(await schemesOf()).toHaveLength(0);
}

const schemesOf = () => sql`SELECT * FROM hash_schemes ORDER BY slot`;

async function adoptAll(rawKeys: readonly string[], keyIds: readonly string[]): Promise<void> {
  for (const rawKey of rawKeys) await outcomeOf(nodes[0], rawKey);
  await eventually(async () => (await Promise.all(keyIds.map(isAdopted))).every(Boolean));
}

describe.each(["fast", "slow"] as const)("a key with a real %s hash", (kind) => {
  test("is valid on every node once its import returns, in a hash format that none of them knew", async () => {
    for (let place = 0; place < 3; place++) {
      const node = nodes[place] ?? nodes[0];
      const rawKey = newRawKey();
      for (let again = 0; again < 2; again++) expect(await everywhere(rawKey)).toBe("NOT_FOUND");
      await forget();
      const { keyId } = await importBy(node, KINDS[kind](rawKey));
      expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
    }
  });

  test("is not accepted for another raw key, and a flood of those does not lock it out", async () => {
    const rawKey = newRawKey();
    const { keyId } = await importBy(nodes[0], KINDS[kind](rawKey));
    const wrong = await atOnce(30, (index) => outcomeOf(nodes[index % 3] ?? nodes[0], `${rawKey}${index}`));
    expect(new Set(wrong)).toEqual(new Set(["NOT_FOUND"]));
    expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
  });
});

/** Makes the format of the hash one in use. */
const use = (kind: keyof typeof KINDS) => importBy(nodes[0], KINDS[kind](newRawKey()));

const outcomesOf = (results: readonly unknown[]) =>
  results.map((result) => (result instanceof KeyholdError ? result.code : "imported"));

const importAll = async ({ keys }: RealNode, inputs: readonly Hashed[]) => {
  const parsed = inputs.map((hashed) => parseNewImport(keys, inputOf(hashed)));
  return outcomesOf(await importKeys(keys, operator, parsed));
};

describe.each(["fast", "slow"] as const)("a raw key of which a %s hash is stored", (kind) => {
  const hashOf = KINDS[kind];

  test("is not imported, by any node, also once the hash is revoked", async () => {
    for (const [place, node] of nodes.entries()) {
      const rawKey = newRawKey();
      const { keyId } = await importBy(nodes[(place + 1) % 3] ?? nodes[0], hashOf(rawKey));
      await expect(importBy(node, { rawKey })).rejects.toMatchObject({ code: "RAW_KEY_ALREADY_EXISTS" });
      await revokeKey(node.keys, operator, { keyId, kind: null }, { reason: "UNSPECIFIED", description: null });
      await expect(importBy(node, { rawKey })).rejects.toMatchObject({ code: "RAW_KEY_ALREADY_EXISTS" });
      expect(await everywhere(rawKey)).toBe("KEY_REVOKED");
      await importBy(node, { rawKey: `${rawKey}-of-another-key` });
    }
  });

  test("is not imported by a batch of any size, with the hash before it or stored", async () => {
    for (const size of [0, 150]) {
      const [rawKey, stored, fresh] = [newRawKey(), newRawKey(), newRawKey()];
      await importBy(nodes[1], hashOf(stored));
      const others = Array.from({ length: size }, () => ({ rawKey: newRawKey() }));
      const outcomes = await importAll(nodes[0], [
        hashOf(rawKey),
        { rawKey },
        { rawKey: stored },
        { rawKey: fresh },
        ...others,
      ]);
      const expected = ["imported", "RAW_KEY_ALREADY_EXISTS", "RAW_KEY_ALREADY_EXISTS", "imported"];
      expect(outcomes).toEqual([...expected, ...others.map(() => "imported")]);
    }
  });

  test("is imported or its hash is, if both are at once", async () => {
    await use(kind);
    for (let again = 0; again < 10; again++) {
      const rawKey = newRawKey();
      const inputs = [hashOf(rawKey), { rawKey }];
      const results = await atOnce(6, (index) =>
        importBy(nodes[index % 3] ?? nodes[0], inputs[index % 2] ?? {}).catch((error: unknown) => error),
      );
      const imported = results.filter((result) => !(result instanceof KeyholdError));
      // A salted hash cannot be compared with a raw key that was stored before it.
      if (kind === "fast") expect(imported).toHaveLength(1);
      const decides = imported.find((result) => (result as ApiKey).hashAlgorithm === null) ?? imported[0];
      expect(await everywhere(rawKey)).toBe(`VALID ${(decides as ApiKey).keyId}`);
    }
  });
});

test("a fast hash is not imported after its raw key, in a format that was in use then", async () => {
  await use("fast");
  const rawKey = newRawKey();
  const { keyId } = await importBy(nodes[1], { rawKey });
  await expect(importBy(nodes[2], sha256(rawKey))).rejects.toMatchObject({ code: "RAW_KEY_ALREADY_EXISTS" });
  expect(await importAll(nodes[0], [{ rawKey: `${rawKey}2` }, sha256(`${rawKey}2`)])).toEqual([
    ...["imported", "RAW_KEY_ALREADY_EXISTS"],
  ]);
  expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
});

describe("hash formats", () => {
  test("are stored once by nodes that add the same one at once", async () => {
    await forget();
    const ids = await atOnce(30, (index) =>
      (nodes[index % 3] ?? nodes[0]).resources.hashing.formats.schemeId({
        ...{ algorithm: "SHA256", prefix: "p", suffix: "", hmacKeyId: null },
      }),
    );
    expect(new Set(ids).size).toBe(1);
    expect(await schemesOf()).toHaveLength(1);
  });

  test("are at most eight without a salt, also if nodes add them at once", async () => {
    await forget();
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) =>
        importBy(nodes[index % 3] ?? nodes[0], sha256(newRawKey(), `prefix ${index}`)),
      ),
    );
    const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(refused).toHaveLength(4);
    for (const error of refused) {
      expect(error).toMatchObject({ code: "TOO_MANY_HASH_SCHEMES" });
      expect(error.message).toMatch(/at most 8 hash formats without a salt are allowed.*adopted = false/);
    }
    expect(await schemesOf()).toHaveLength(8);
    expect(await sql`SELECT FROM api_keys WHERE hash_scheme_id IS NOT NULL`).toHaveLength(8);
  });

  test("are free again as soon as their last key is adopted or deleted", async () => {
    await forget();
    const rawKeys = Array.from({ length: 8 }, newRawKey);
    const keyIds: string[] = [];
    for (const [index, rawKey] of rawKeys.entries())
      keyIds.push((await importBy(nodes[0], sha256(rawKey, `prefix ${index}`))).keyId);
    const ninth = newRawKey();
    await expect(importBy(nodes[1], sha256(ninth, "ninth"))).rejects.toMatchObject({ code: "TOO_MANY_HASH_SCHEMES" });
    await adoptAll(rawKeys.slice(0, 1), keyIds.slice(0, 1));
    const { keyId } = await importBy(nodes[1], sha256(ninth, "ninth"));
    expect(await everywhere(ninth)).toBe(`VALID ${keyId}`);
    // The adopted key does not need its scheme any more.
    expect(await everywhere(rawKeys[0] ?? "")).toBe(`VALID ${keyIds[0]}`);
  });

  test("are kept for a key that is imported while they are removed", async () => {
    await forget();
    for (let again = 0; again < 30; again++) {
      const rawKey = newRawKey();
      await age();
      const removed = Promise.all(nodes.map(({ resources }) => resources.hashing.removeUnused()));
      const node = nodes[again % 3] ?? nodes[0];
      const { keyId } = await importBy(node, again % 2 === 0 ? sha256(rawKey, "in a race") : scrypt(rawKey));
      await removed;
      expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
      await eventually(() => isAdopted(keyId));
    }
  });

  test("have prefixes of at most four lengths, and no two keys with one prefix", async () => {
    await forget();
    for (const length of [6, 7, 8, 9]) await importBy(nodes[0], scrypt(newRawKey(), length));
    await expect(importBy(nodes[1], scrypt(newRawKey(), 10))).rejects.toMatchObject({
      code: "TOO_MANY_PREFIX_LENGTHS",
      message: expect.stringContaining("only prefixes of 6, 7, 8, 9 bytes are allowed"),
    });
    const rawKey = newRawKey();
    const { keyId } = await importBy(nodes[0], scrypt(rawKey, 9));
    const other = importBy(nodes[1], scrypt(`${rawKey.slice(0, 9)} and the rest`, 9));
    await expect(other).rejects.toMatchObject({ code: "LOOKUP_PREFIX_ALREADY_EXISTS" });
    expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
    await eventually(() => isAdopted(keyId));
    await importBy(nodes[1], scrypt(`${rawKey.slice(0, 9)} and the rest`, 9));
    await sql`DELETE FROM api_keys WHERE hash_prefix_length = 6`;
    await importBy(nodes[1], scrypt(newRawKey(), 10));
  });
});

describe("an HMAC key", () => {
  const HMAC = { hmacKeyId: "h", key: "the key of the HMACs of another system", encoding: "UTF8" } as const;
  const create = ({ resources }: RealNode, more = {}) => {
    const { hmacKeyId, key, encoding } = { ...HMAC, ...more };
    return createHmacKey(resources.hashing.hmacKeys, operator, hmacKeyId, parseHmacKey(key, encoding));
  };
  const remove = ({ resources }: RealNode) => deleteHmacKey(resources.hashing.hmacKeys, operator, HMAC.hmacKeyId);
  const hmac = (rawKey: string, key: string = HMAC.key): Hashed => {
    const value = createHmacOf(rawKey, key);
    return { rawKeyHash: { algorithm: "HMAC_SHA512", value, encoding: "BASE64URL", hmacKeyId: HMAC.hmacKeyId } };
  };

  test("is known to every node once its creation returns, and is kept while keys need it", async () => {
    await sql`DELETE FROM api_keys`;
    const rawKey = newRawKey();
    await expect(importBy(nodes[1], hmac(rawKey))).rejects.toMatchObject({
      ...{ code: "INVALID_ARGUMENT", violations: [{ field: "raw_key_hash.hmac_key_id" }] },
    });
    const created = await Promise.all(nodes.map((node) => create(node)));
    expect(new Set(created.map(({ hmacKeyId }) => hmacKeyId))).toEqual(new Set(["h"]));
    await expect(create(nodes[1], { key: `${HMAC.key}.` })).rejects.toMatchObject({ code: "HMAC_KEY_ALREADY_EXISTS" });
    const { keyId } = await importBy(nodes[1], hmac(rawKey));
    expect(await listHmacKeys(nodes[2].resources.hashing.hmacKeys)).toMatchObject([{ notAdoptedCount: 1 }]);
    await expect(remove(nodes[2])).rejects.toMatchObject({ code: "HMAC_KEY_IN_USE" });
    expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
    await eventually(() => isAdopted(keyId));
    await remove(nodes[2]);
    await expect(remove(nodes[0])).rejects.toMatchObject({ code: "HMAC_KEY_NOT_FOUND" });
    expect(await everywhere(rawKey)).toBe(`VALID ${keyId}`);
  });

  test("that has the id of a deleted one recognizes its own keys only", async () => {
    await create(nodes[0], { key: "another key" });
    const [rawKey, other] = [newRawKey(), newRawKey()];
    const { keyId } = await importBy(nodes[1], hmac(rawKey, "another key"));
    await importBy(nodes[1], hmac(other));
    expect([await everywhere(rawKey), await everywhere(other)]).toEqual([`VALID ${keyId}`, "NOT_FOUND"]);
    await sql`DELETE FROM api_keys`;
    await remove(nodes[1]);
  });

  test("is not deleted while a key is imported with it", async () => {
    for (let again = 0; again < 10; again++) {
      await create(nodes[0]);
      const rawKey = newRawKey();
      const imported = importBy(nodes[1], hmac(rawKey)).then(
        ({ keyId }) => keyId,
        (error) => error.code,
      );
      const removed = await remove(nodes[2]).then(
        () => true,
        (error) => {
          expect(error.code).toBe("HMAC_KEY_IN_USE");
          return false;
        },
      );
      const result = await imported;
      if (removed) expect(["INVALID_ARGUMENT", "CONCURRENT_CHANGE"]).toContain(result);
      else expect(await everywhere(rawKey)).toBe(`VALID ${result}`);
      await sql`DELETE FROM api_keys`;
    }
  });

  test("is stored encrypted, under its id", async () => {
    // The test before may end with a scheme of the key, by which its id may not change.
    await forget();
    await create(nodes[0]);
    const [row] = await sql`SELECT * FROM hmac_keys`;
    expect(row?.wrapped_key.includes(HMAC.key)).toBe(false);
    await sql`UPDATE hmac_keys SET hmac_key_id = 'renamed'`;
    const renamed = { rawKeyHash: { ...hmac(newRawKey()).rawKeyHash, hmacKeyId: "renamed" } };
    await expect(importBy(nodes[0], renamed)).rejects.toMatchObject({
      code: "INTERNAL",
      message: "the hmac key renamed cannot be unwrapped: it was altered, or wrapped with another root secret",
    });
    await sql`DELETE FROM hmac_keys`;
  });
});

test("a node that starts later, or under another current root secret, recognizes the same keys", async () => {
  await forget();
  const next = "another-root-secret-9876543210-zyxwvutsrqponm";
  const [fast, slow] = [newRawKey(), newRawKey()];
  const ids = [await importBy(nodes[0], sha256(fast, "salt:")), await importBy(nodes[1], scrypt(slow))];
  const later = await openRealNode(database.url, {
    ...{ KEYHOLD_ROOT_SECRET: next, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET },
  });
  const outcomes = [await outcomeOf(later, fast), await outcomeOf(later, slow)];
  expect(outcomes).toEqual(ids.map(({ keyId }) => `VALID ${keyId}`));
  await later.close();
});

function createHmacOf(rawKey: string, key: string): string {
  return createHmac("sha512", key).update(rawKey).digest("base64url");
}
