import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { digestAll, digestCurrent } from "../../src/credential/digest.ts";
import { newId } from "../../src/domain/key.ts";
import type { Verdict } from "../../src/domain/verdict.ts";
import { deleteImportedKey } from "../../src/keys/delete.ts";
import { deriveToken, parseDerivation } from "../../src/keys/derive.ts";
import { importKey, parseNewImport } from "../../src/keys/import.ts";
import { getKey } from "../../src/keys/read.ts";
import { revokeKey, selfRevoke } from "../../src/keys/revoke.ts";
import { systemRandom } from "../../src/lib/random.ts";
import type { CacheMode } from "../../src/verify/reader.ts";
import { type HashedKeyFields, type HashNode, hashedKey, openHashNode } from "../support/hash-nodes.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { createTestDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { atOnce } from "../support/races.ts";
import { ROOT_SECRET } from "../support/server.ts";

const KINDS = ["fast", "slow"] as const;
const MODES: readonly CacheMode[] = ["default", "no-cache", "no-store"];
const REVOCATION = { reason: "KEY_COMPROMISE", description: null } as const;

let database: TestDatabase;
let sql: postgres.Sql;
let nodes: readonly [HashNode, HashNode, HashNode];

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 4, onnotice: () => {} });
  const open = (environment?: Record<string, string>) => openHashNode(database.url, environment);
  // The last one has no cache.
  nodes = [await open(), await open(), await open({ KEYHOLD_CACHE_SIZE: "0" })];
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await sql.end();
  await database.drop();
});
afterEach(() => {
  for (const node of nodes) node.wait(60_000);
});

/** Raw keys that all have one prefix would be one candidate. */
const newRawKey = () => `${randomBytes(8).toString("hex")}-of-another-service`;

async function importHashed(kind: "fast" | "slow", fields?: HashedKeyFields, [node] = nodes) {
  const rawKey = newRawKey();
  const key = hashedKey(node, kind, rawKey, fields);
  expect(await node.keys.store.insert([key])).toMatchObject([{ outcome: "inserted" }]);
  return { rawKey, keyId: key.key.keyId, key };
}

const verify = async ({ api }: HashNode, rawKey: string, mode?: CacheMode) => api.verify(operator, rawKey, mode);

function outcome(verdict: Verdict): string {
  return verdict.valid ? "VALID" : verdict.reason;
}

const outcomeOf = async (node: HashNode, rawKey: string, mode?: CacheMode) => outcome(await verify(node, rawKey, mode));

/** The outcomes on all nodes, by every mode. */
const everywhere = async (rawKey: string) => {
  const verdicts = nodes.flatMap((node) => MODES.map((mode) => outcomeOf(node, rawKey, mode)));
  return [...new Set(await Promise.all(verdicts))].join();
};

const adoptionsOf = async (keyId: string) => {
  for (const node of nodes) await node.idle();
  return nodes.flatMap((node) => node.adoptions()).filter((change) => change.key.keyId === keyId);
};

async function isAdopted(keyId: string): Promise<boolean> {
  const [row] = await sql`SELECT hash_algorithm, adopt_time FROM api_keys WHERE key_id = ${keyId}`;
  return row?.hash_algorithm === null && row.adopt_time !== null;
}

const adopted = (keyId: string) => eventually(() => isAdopted(keyId));

describe.each(KINDS)("a key with a %s hash", (kind) => {
  test("is adopted exactly once by three nodes that verify it at once, and is valid all the time", async () => {
    const { rawKey, keyId } = await importHashed(kind);
    const failed = nodes.map(({ outcomes }) => outcomes.failed);
    const verdicts = await atOnce(600, (index) => outcomeOf(nodes[index % 3] ?? nodes[0], rawKey));
    expect(new Set(verdicts)).toEqual(new Set(["VALID"]));
    while (!(await isAdopted(keyId))) expect(await everywhere(rawKey)).toBe("VALID");
    expect(await everywhere(rawKey)).toBe("VALID");
    expect(await adoptionsOf(keyId)).toMatchObject([
      {
        before: { hashAlgorithm: expect.any(String), adoptTime: null },
        after: { hashAlgorithm: null },
        principal: operator,
      },
    ]);
    expect(nodes.map(({ outcomes }) => outcomes.failed)).toEqual(failed);
  });

  test("is one of many that are each adopted exactly once", async () => {
    const imported = await Promise.all(Array.from({ length: 100 }, () => importHashed(kind)));
    const verdicts = await Promise.all(
      nodes.flatMap((node) => imported.flatMap(({ rawKey }) => [1, 2, 3].map(() => outcomeOf(node, rawKey)))),
    );
    expect(new Set(verdicts)).toEqual(new Set(["VALID"]));
    await eventually(async () => {
      for (const { rawKey } of imported) expect(await outcomeOf(nodes[1], rawKey)).toBe("VALID");
      return (await Promise.all(imported.map(({ keyId }) => isAdopted(keyId)))).every(Boolean);
    });
    const counts = await Promise.all(imported.map(async ({ keyId }) => (await adoptionsOf(keyId)).length));
    expect(counts).toEqual(imported.map(() => 1));
  });

  test("is valid on every node once its import returns, though all of them had looked it up in vain", async () => {
    const rawKey = newRawKey();
    for (let again = 0; again < 2; again++) expect(await everywhere(rawKey)).toBe("NOT_FOUND");
    await nodes[1].keys.store.insert([hashedKey(nodes[1], kind, rawKey)]);
    expect(await everywhere(rawKey)).toBe("VALID");
  });

  test("is valid on other nodes while one adopts it", async () => {
    const { rawKey, keyId } = await importHashed(kind);
    const row = await lockRow(sql, keyId);
    expect(await outcomeOf(nodes[0], rawKey)).toBe("VALID");
    await eventually(() => isAwaited(sql));
    expect(await everywhere(rawKey)).toBe("VALID");
    await row.release();
    await adopted(keyId);
    expect(await everywhere(rawKey)).toBe("VALID");
    expect(await adoptionsOf(keyId)).toHaveLength(1);
  });

  test("is invalid everywhere once a revocation returns, whatever its adoption does", async () => {
    for (let again = 0; again < 20; again++) {
      const { rawKey, keyId } = await importHashed(kind);
      const verdicts = nodes.map((node) => outcomeOf(node, rawKey));
      const name = { keyId, kind: null };
      if (again % 2 === 0) await Promise.race(verdicts);
      await revokeKey(nodes[again % 3]?.keys ?? nodes[0].keys, operator, name, REVOCATION);
      expect(await everywhere(rawKey)).toBe("KEY_REVOKED");
      for (const verdict of await Promise.all(verdicts)) expect(["VALID", "KEY_REVOKED"]).toContain(verdict);
      expect((await adoptionsOf(keyId)).length).toBeLessThanOrEqual(1);
    }
  });

  test("is unknown everywhere once a deletion returns, also if that was faster than its adoption", async () => {
    const { rawKey, keyId } = await importHashed(kind);
    const before = nodes[0].outcomes.already;
    const row = await lockRow(sql, keyId);
    expect(await outcomeOf(nodes[0], rawKey)).toBe("VALID");
    await eventually(() => isAwaited(sql));
    await row.releaseDeleted();
    await eventually(async () => nodes[0].outcomes.already > before);
    // A statement by hand does not wait for the nodes.
    await eventually(async () => (await everywhere(rawKey)) === "NOT_FOUND");
    const other = await importHashed(kind);
    await outcomeOf(nodes[1], other.rawKey);
    await deleteImportedKey(nodes[0].keys, operator, other.keyId);
    expect(await everywhere(other.rawKey)).toBe("NOT_FOUND");
  });

  test("keeps what was derived from it, and revokes itself before its adoption", async () => {
    const { rawKey, keyId } = await importHashed(kind);
    const row = await lockRow(sql, keyId);
    const { derive } = nodes[0].api;
    const input = { ttl: undefined, scopes: [], audience: [], claims: {} };
    const tokens: string[] = [];
    for (const algorithm of ["JWT", "MACAROON"] as const) {
      const parent = await nodes[0].api.verifyStrictly(operator, rawKey);
      tokens.push(
        (await deriveToken(derive, rawKey, parent, parseDerivation({ ...input, algorithm }, derive.limits))).token,
      );
    }
    for (const token of tokens) expect(await everywhere(token)).toBe("VALID");
    await row.release();
    await adopted(keyId);
    for (const token of tokens) expect(await everywhere(token)).toBe("VALID");

    const other = await importHashed(kind);
    const locked = await lockRow(sql, other.keyId);
    const verdict = await nodes[2].api.verifyStrictly(operator, other.rawKey);
    const revoked = selfRevoke(nodes[2].keys, operator, verdict, REVOCATION.reason);
    await locked.release();
    expect(await revoked).toMatchObject({ keyId: other.keyId });
    expect(await everywhere(other.rawKey)).toBe("KEY_REVOKED");
  });

  test("lives on once it is adopted in time", async () => {
    const soon = new Date(Date.now() + 3_600_000);
    const later = new Date(Date.now() + 7_200_000);
    const inTime = await importHashed(kind, { adoptBeforeTime: soon, expireTime: later });
    const forever = await importHashed(kind, { adoptBeforeTime: soon });
    for (const { rawKey } of [inTime, forever]) expect(await everywhere(rawKey)).toBe("VALID");
    await Promise.all([adopted(inTime.keyId), adopted(forever.keyId)]);
    const times = async (keyId: string) => {
      const { expireTime, adoptBeforeTime } = await getKey(nodes[0].keys, operator, "imported", keyId);
      return [expireTime, adoptBeforeTime];
    };
    expect(await times(inTime.keyId)).toEqual([later, null]);
    expect(await times(forever.keyId)).toEqual([null, null]);
    const late = await importHashed(kind, { adoptBeforeTime: new Date(Date.now() - 1), expireTime: later });
    expect(await everywhere(late.rawKey)).toBe("EXPIRED");
    expect(await isAdopted(late.keyId)).toBe(false);
  });

  test("keeps the expiry of an update when it is adopted", async () => {
    const [soon, asked] = [new Date(Date.now() + 3_600_000), new Date(Date.now() + 1_800_000)];
    const { rawKey, keyId } = await importHashed(kind, { adoptBeforeTime: soon });
    const { store } = nodes[1].keys;
    const update = { expiry: { time: asked, maxKeyTtl: null } };
    expect(
      await store.change({ keyId, kind: null }, { verb: "update", ...update }, operator, new Date()),
    ).toMatchObject({
      ...{ expireTime: asked, adoptBeforeTime: null, hashAlgorithm: expect.any(String) },
    });
    expect(await everywhere(rawKey)).toBe("VALID");
    await adopted(keyId);
    expect(await verify(nodes[0], rawKey)).toMatchObject({ valid: true, expireTime: asked });
  });

  test("does not live on if another node, whose clock is ahead, may have rejected it as expired", async () => {
    const { rawKey, keyId } = await importHashed(kind, { adoptBeforeTime: new Date(Date.now() + 3_600_000) });
    const before = nodes[0].outcomes.already;
    await sql`UPDATE nodes SET clock_ahead_ms = 7200000`;
    expect(await outcomeOf(nodes[0], rawKey)).toBe("VALID");
    await eventually(async () => nodes[0].outcomes.already > before);
    expect(await isAdopted(keyId)).toBe(false);
    await sql`UPDATE nodes SET clock_ahead_ms = 0`;
  });

  test("is not stored again by its hash, if that has no salt, or by its raw key", async () => {
    const { rawKey, keyId, key } = await importHashed(kind);
    await outcomeOf(nodes[0], rawKey);
    await adopted(keyId);
    const again = { ...key, key: { ...key.key, keyId: key.key.keyId.replace(/^.{8}/, "01000000") } };
    if (kind === "fast") expect(await nodes[1].keys.store.insert([again])).toEqual([{ outcome: "raw_key_exists" }]);
    const input = { rawKey, name: "raw", actorId: "a", scopes: [], metadata: {} };
    const raw = importKey(nodes[1].keys, operator, parseNewImport(nodes[1].keys, input));
    await expect(raw).rejects.toMatchObject({ code: "RAW_KEY_ALREADY_EXISTS" });
    expect(await everywhere(rawKey)).toBe("VALID");
    // Its prefix is free for another key.
    expect(await sql`SELECT FROM raw_key_digests WHERE key_id = ${keyId}`).toHaveLength(kind === "fast" ? 2 : 1);
  });

  test("stays as it is if its raw key is stored before its adoption, and the raw key decides", async () => {
    const { rawKey, keyId, key } = await importHashed(kind);
    const row = await lockRow(sql, keyId);
    const before = nodes[0].outcomes.failed;
    expect(await outcomeOf(nodes[0], rawKey)).toBe("VALID");
    await eventually(() => isAwaited(sql));
    // As if the format of the hash had not been in use, or stored by a server that does not compare it.
    const raw = { ...key.key, keyId: newId(Date.now(), systemRandom), hashAlgorithm: null, adoptBeforeTime: null };
    const digest = digestCurrent(rawKey, nodes[1].resources.rings.digest);
    await nodes[1].keys.store.insert([{ key: raw, digest, otherDigests: [], request: null, principal: operator }]);
    await row.release();
    await eventually(async () => nodes[0].outcomes.failed > before);
    expect(await isAdopted(keyId)).toBe(false);
    expect(await verify(nodes[0], rawKey)).toMatchObject({ valid: true, key: { keyId: raw.keyId } });
    await revokeKey(nodes[2].keys, operator, { keyId: raw.keyId, kind: null }, REVOCATION);
    expect(await everywhere(rawKey)).toBe("KEY_REVOKED");
  });

  test("is valid while the database takes no writes, and is adopted later", async () => {
    const { rawKey, keyId } = await importHashed(kind);
    const before = nodes[0].failures.length;
    await sql.unsafe(`REVOKE UPDATE ON api_keys FROM ${userOf(database.url)}`);
    for (let again = 0; again < 3; again++) {
      expect(await everywhere(rawKey)).toBe("VALID");
      for (const node of nodes) {
        await node.idle();
        node.wait(60_000);
      }
    }
    // Each key is reported once.
    expect(nodes[0].failures.length).toBe(before + 1);
    await sql.unsafe(`GRANT UPDATE ON api_keys TO ${userOf(database.url)}`);
    expect(await everywhere(rawKey)).toBe("VALID");
    await adopted(keyId);
    expect(await adoptionsOf(keyId)).toHaveLength(1);
  });
});

test("a revocation that returns while another node computes a slow hash decides its verdict", async () => {
  const { rawKey, keyId } = await importHashed("slow");
  const { begun, release } = nodes[1].hashes.hold();
  const verdicts = MODES.map((mode) => outcomeOf(nodes[1], rawKey, mode));
  await begun;
  await revokeKey(nodes[0].keys, operator, { keyId, kind: null }, REVOCATION);
  release();
  expect(await Promise.all(verdicts)).toEqual(MODES.map(() => "KEY_REVOKED"));
  expect(await adoptionsOf(keyId)).toEqual([]);
});

test("nodes with other root secrets verify and adopt what they know a root secret of", async () => {
  const next = "another-root-secret-9876543210-zyxwvutsrqponm";
  const open = (environment: Record<string, string>) => openHashNode(database.url, environment);
  const prepared = await open({ KEYHOLD_ROOT_SECRETS_RETIRED: next });
  const promoted = await open({ KEYHOLD_ROOT_SECRET: next, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET });
  for (const kind of KINDS) {
    for (const [by, other] of [
      [prepared, promoted],
      [promoted, prepared],
    ] as const) {
      const { rawKey, keyId } = await importHashed(kind, {}, [by, by, by]);
      expect(await outcomeOf(other, rawKey)).toBe("VALID");
      await adopted(keyId);
      const [row] = await sql`SELECT digest_key_id, digest FROM api_keys WHERE key_id = ${keyId}`;
      const [current] = digestAll(rawKey, other.resources.rings.digest);
      expect(row).toMatchObject({ digest_key_id: current?.keyId, digest: current?.digest });
      expect([await outcomeOf(by, rawKey), await outcomeOf(other, rawKey, "no-store")]).toEqual(["VALID", "VALID"]);
    }
  }
  await Promise.all([prepared.close(), promoted.close()]);
});

test("a node stops though an adoption does not end", async () => {
  const node = await openHashNode(database.url);
  const { rawKey, keyId } = await importHashed("fast");
  const row = await lockRow(sql, keyId);
  expect(await outcomeOf(node, rawKey)).toBe("VALID");
  await eventually(() => isAwaited(sql));
  const stopped = node.adopter.stop();
  await row.release();
  await stopped;
  expect(await isAdopted(keyId)).toBe(true);
  await node.close();
});
