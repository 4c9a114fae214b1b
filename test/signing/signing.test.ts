import { describe, expect, test } from "vitest";
import { deriveKeyRing, type KeyRing } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { revokeSigningKey } from "../../src/signing/revoke.ts";
import { createSigning, rewrapSigningKeys, rotateSigningKey, type SigningContext } from "../../src/signing/signing.ts";
import type { PublicSigningJwk } from "../../src/token/jwt/algorithms.ts";
import { newestFirst } from "../../src/token/signing-key.ts";
import { MemoryStore } from "./memory-store.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Noon, so that one hour later is the same day. */
const NOON = Date.UTC(2026, 0, 15, 12);

const roots = [1, 2].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer];
const ringOf = (current: Uint8Array, ...retired: Uint8Array[]): KeyRing =>
  deriveKeyRing({ current, retired }, "signing-key-wrap");
const ring = ringOf(roots[0]);

/** Creates a store, a manual clock, and nodes on them. */
function setUp() {
  const store = new MemoryStore();
  const clock = { time: NOON, now: () => clock.time };
  const context = (more: Partial<SigningContext> = {}): SigningContext => ({
    store,
    ring,
    algorithm: null,
    clock,
    random: systemRandom,
    version: () => 0,
    renewed: async () => undefined,
    ...more,
  });
  return { store, clock, context, start: (more: Partial<SigningContext> = {}) => createSigning(context(more)) };
}

/** Returns whether a promise is still pending after all possible progress. */
async function isPending(promise: unknown): Promise<boolean> {
  let isOpen = true;
  const settle = () => {
    isOpen = false;
  };
  Promise.resolve(promise).then(settle, settle);
  await new Promise(setImmediate);
  return isOpen;
}

/** Returns a well-formed, unknown `kid`. */
const unknownKid = () => Buffer.from(systemRandom.bytes(32)).toString("base64url");

describe("keys that may have changed", () => {
  test("are read once more before the next token is signed and before they are published", async () => {
    const { store, context } = setUp();
    let version: number | null = 1;
    const node = await createSigning(context({ version: () => version }));
    const { kid } = await rotateSigningKey(context());
    const reads = store.count("list");
    expect(node.signer(0)).not.toBeInstanceOf(Promise);
    version = 2;
    expect((await node.signer(0)).kid).toBe(kid);
    expect(node.jwks()).toMatchObject({ keys: [{ kid }] });
    expect(store.count("list")).toBe(reads + 1);
  });

  test("are read for each call while invalidations are not guaranteed", async () => {
    const { store, context } = setUp();
    const node = await createSigning(context({ version: () => null }));
    const { kid } = await rotateSigningKey(context());
    const reads = store.count("list");
    expect((await node.signer(0)).kid).toBe(kid);
    expect((await node.jwks()).keys).toMatchObject([{ kid }]);
    expect(store.count("list")).toBe(reads + 2);
  });

  test("are published unchanged while they cannot be read, and nothing is signed", async () => {
    const { store, context } = setUp();
    const node = await createSigning(context({ version: () => null }));
    const before = await node.jwks();
    store.hold("list").fail(new Error("out of reach"));
    expect(await node.jwks()).toEqual(before);
    store.hold("list").fail(new Error("out of reach"));
    await expect(async () => node.signer(0)).rejects.toThrow("out of reach");
  });

  test("are read again if they change during the read", async () => {
    const { context, store } = setUp();
    let version = 1;
    const node = await createSigning(context({ version: () => version }));
    version = 2;
    const list = store.hold("list");
    const signing = node.signer(0);
    expect(await isPending(signing)).toBe(true);
    version = 3;
    list.release();
    await signing;
    const reads = store.count("list");
    await node.signer(0);
    expect(store.count("list")).toBe(reads + 1);
  });
});

describe("the first signing key", () => {
  test("is created once, at the first start", async () => {
    const { store, start } = setUp();
    const first = await start();
    const second = await start();
    expect(store.count("addFirst")).toBe(1);
    expect(second.jwks()).toEqual(first.jwks());
    expect((await first.jwks()).keys).toHaveLength(1);
  });

  test("is the only one when several nodes start concurrently", async () => {
    const { store, start } = setUp();
    const nodes = await Promise.all(Array.from({ length: 10 }, () => start()));
    expect(store.records).toHaveLength(1);
    expect(new Set(nodes.map((node) => JSON.stringify(node.jwks()))).size).toBe(1);
  });
});

describe("the algorithm of a new key", () => {
  /** The algorithms of all keys, newest first. */
  const algorithms = (store: MemoryStore) => newestFirst(store.records).map(({ publicJwk }) => publicJwk.alg);

  test("is EdDSA unless another is configured", async () => {
    for (const [algorithm, expected] of [
      [null, "EdDSA"],
      ["EdDSA", "EdDSA"],
      ["ES256", "ES256"],
    ] as const) {
      const { store, start } = setUp();
      expect((await (await start({ algorithm })).signer(0)).algorithm.alg).toBe(expected);
      expect(algorithms(store)).toEqual([expected]);
    }
  });

  test("of a node does not replace an active key with another one", async () => {
    const { store, start } = setUp();
    await start({ algorithm: "EdDSA" });
    for (const algorithm of ["ES256", "EdDSA", "ES256"] as const) {
      const node = await start({ algorithm });
      await node.reload();
      expect((await node.signer(0)).algorithm.alg).toBe("EdDSA");
    }
    expect(algorithms(store)).toEqual(["EdDSA"]);
  });

  test.each([
    ["that of the option", { algorithm: "ES256" }, "EdDSA", "ES256"],
    ["the configured one", {}, "ES256", "ES256"],
    ["that of the active key if none is configured", {}, null, "EdDSA"],
  ] as const)("is %s on a rotation", async (_, options, algorithm, expected) => {
    const { context, start } = setUp();
    await start();
    expect((await rotateSigningKey(context({ algorithm }), options)).publicJwk.alg).toBe(expected);
  });

  test("remains ES256 on rotations without a setting", async () => {
    const { store, clock, context, start } = setUp();
    await start({ algorithm: "ES256" });
    for (let count = 0; count < 2; count++) {
      clock.time += MINUTE;
      await rotateSigningKey(context(), { force: count === 1 });
    }
    expect(algorithms(store)).toEqual(["ES256", "ES256", "ES256"]);
  });

  test("changes live: a node signs with the new key, and verifies with both", async () => {
    const { context, clock, start } = setUp();
    let version = 1;
    const node = await start({ version: () => version });
    const kids = [(await node.signer(NOON + HOUR)).kid];
    for (const algorithm of ["ES256", "EdDSA"] as const) {
      clock.time += MINUTE;
      await rotateSigningKey(context(), { algorithm });
      version++;
      const signer = await node.signer(NOON + HOUR);
      kids.push(signer.kid);
      expect(signer.algorithm.alg).toBe(algorithm);
    }
    const keys = await Promise.all(kids.map((kid) => node.publicKey(kid)));
    expect(keys.map((key) => key?.algorithm.alg)).toEqual(["EdDSA", "ES256", "EdDSA"]);
    expect((await node.jwks()).keys.map(({ alg }) => alg)).toEqual(["EdDSA", "ES256", "EdDSA"]);
  });

  test("is not changed to one that a running node does not know", async () => {
    const { store, context, start } = setUp();
    await start();
    store.oldNodes = ["old-1", "old-2"];
    const change = () => rotateSigningKey(context(), { algorithm: "ES256" });
    await expect(change).rejects.toThrow(
      "servers of an earlier release do not support ES256: upgrade old-1, old-2 first",
    );
    expect(algorithms(store)).toEqual(["EdDSA"]);
    await rotateSigningKey(context());
    store.oldNodes = [];
    await change();
    store.oldNodes = ["one that cannot start"];
    expect((await rotateSigningKey(context())).publicJwk.alg).toBe("ES256");
  });

  test("is EdDSA if the active key is one of a later release and is replaced by force", async () => {
    const { store, context, start } = setUp();
    await start();
    const later = { alg: "ML-DSA-44" } as unknown as PublicSigningJwk;
    store.records = store.records.map((record) => ({ ...record, publicJwk: later }));
    await expect(rotateSigningKey(context())).rejects.toThrow("does not support its algorithm ML-DSA-44");
    expect((await rotateSigningKey(context(), { force: true })).publicJwk.alg).toBe("EdDSA");
  });

  test("does not matter when keys are wrapped under another root secret", async () => {
    const { store, clock, context, start } = setUp();
    const node = await start();
    await node.signer(NOON + HOUR);
    clock.time += MINUTE;
    await rotateSigningKey(context(), { algorithm: "ES256" });
    expect(await rewrapSigningKeys(context({ ring: ringOf(roots[1], roots[0]) }))).toBe(2);
    const rewrapped = await start({ ring: ringOf(roots[1]) });
    expect(rewrapped.jwks()).toMatchObject({ keys: [{ alg: "ES256" }, { alg: "EdDSA" }] });
    expect(algorithms(store)).toEqual(["ES256", "EdDSA"]);
  });
});

describe("a public key", () => {
  test("that the node has causes no read", async () => {
    const { store, start } = setUp();
    const node = await start();
    const [kid = ""] = store.records.map((record) => record.kid);
    const before = store.count("list");
    expect(await node.publicKey(kid)).toBeDefined();
    expect(store.count("list")).toBe(before);
  });

  test("that was created elsewhere is found at once", async () => {
    const { context, start } = setUp();
    const node = await start();
    const { kid } = await rotateSigningKey(context());
    expect((await node.publicKey(kid))?.publicKey.asymmetricKeyType).toBe("ed25519");
  });

  test("that does not exist is looked up once, and again when the keys may have changed", async () => {
    const { store, start } = setUp();
    let version = 1;
    const node = await start({ version: () => version });
    const before = store.count("list");
    const kid = unknownKid();
    for (let i = 0; i < 200; i++) expect(await node.publicKey(kid)).toBeUndefined();
    expect(store.count("list")).toBe(before + 1);
    version = 2;
    for (let i = 0; i < 200; i++) expect(await node.publicKey(kid)).toBeUndefined();
    expect(store.count("list")).toBe(before + 2);
  });

  test("that does not exist, many times, causes few reads, and a new one is still found at once", async () => {
    const { store, context, start } = setUp();
    let version = 1;
    const node = await start({ version: () => version });
    const before = store.count("list");
    for (let i = 0; i < 200; i++) expect(await node.publicKey(unknownKid())).toBeUndefined();
    expect(store.count("list") - before).toBeLessThanOrEqual(10);
    const { kid } = await rotateSigningKey(context());
    version = 2;
    expect(await node.publicKey(kid)).toBeDefined();
  });

  test("with a malformed kid causes no read", async () => {
    const { store, start } = setUp();
    const node = await start();
    const before = store.count("list");
    for (const kid of ["", "of no key", "k".repeat(42), "k".repeat(44), "+".repeat(43), "k".repeat(8_000)])
      expect(await node.publicKey(kid)).toBeUndefined();
    expect(store.count("list")).toBe(before);
  });

  test("is looked up each time while invalidations are not guaranteed", async () => {
    const { store, context, start } = setUp();
    const node = await start({ version: () => null });
    const before = store.count("list");
    const kid = unknownKid();
    for (let i = 0; i < 20; i++) expect(await node.publicKey(kid)).toBeUndefined();
    expect(store.count("list")).toBe(before + 20);
    expect(await node.publicKey((await rotateSigningKey(context())).kid)).toBeDefined();
  });

  test("causes at most two reads for concurrent calls", async () => {
    const { store, start } = setUp();
    const node = await start();
    const before = store.count("list");
    const held = store.hold("list");
    const answers = Promise.all(Array.from({ length: 100 }, () => node.publicKey(unknownKid())));
    await new Promise(setImmediate);
    held.release();
    expect(new Set(await answers)).toEqual(new Set([undefined]));
    expect(store.count("list")).toBeLessThanOrEqual(before + 2);
  });

  test("that was created during a read is found by another read", async () => {
    const { store, context, start } = setUp();
    const node = await start();
    const held = store.hold("list");
    const reloading = node.reload();
    // The read has begun.
    await new Promise(setImmediate);
    const { kid } = await rotateSigningKey(context(), { force: true });
    const found = node.publicKey(kid);
    expect(await isPending(found)).toBe(true);
    held.release();
    expect(await found).toBeDefined();
    await reloading;
  });

  test("is found after a failed read", async () => {
    const { store, context, start } = setUp();
    const node = await start();
    const held = store.hold("list");
    const reloading = node.reload();
    // The read has begun.
    await new Promise(setImmediate);
    const { kid } = await rotateSigningKey(context(), { force: true });
    const found = node.publicKey(kid);
    held.fail(new Error("no database"));
    await expect(reloading).rejects.toThrow("no database");
    expect(await found).toBeDefined();
  });
});

describe("the active signing key", () => {
  test("is returned without a promise once the store has recorded the expiry", async () => {
    const { store, start } = setUp();
    const node = await start();
    await node.signer(NOON + HOUR);
    expect(node.signer(NOON + HOUR)).not.toBeInstanceOf(Promise);
    expect(node.publicKey(store.records[0]?.kid ?? "")).not.toBeInstanceOf(Promise);
  });

  test("is returned only after the store has recorded the expiry of its tokens", async () => {
    const { store, start } = setUp();
    const node = await start();
    const held = store.hold("extendTokens");
    const signer = node.signer(NOON + HOUR);
    expect(await isPending(signer)).toBe(true);
    held.release();
    await signer;
    expect(store.records[0]?.tokensExpireTime?.getTime()).toBeGreaterThanOrEqual(NOON + HOUR);
  });

  test("is not returned when the store could not record the expiry", async () => {
    const { store, start } = setUp();
    const node = await start();
    const held = store.hold("extendTokens");
    const signer = node.signer(NOON + HOUR);
    held.fail(new Error("no database"));
    await expect(signer).rejects.toThrow("no database");
    await node.signer(NOON + HOUR);
    expect(store.count("extendTokens")).toBe(2);
  });

  test("causes at most one write per day, not one per token", async () => {
    const { store, clock, start } = setUp();
    const node = await start();
    for (let minute = 0; minute < 3 * 24 * 60; minute += 10) {
      clock.time = NOON + minute * MINUTE;
      await node.signer(clock.time + HOUR);
      expect(store.records[0]?.tokensExpireTime?.getTime()).toBeGreaterThanOrEqual(clock.time + HOUR);
    }
    expect(store.count("extendTokens")).toBeGreaterThan(1);
    expect(store.count("extendTokens")).toBeLessThanOrEqual(3);
  });

  test("causes another write for a longer token", async () => {
    const { store, start } = setUp();
    const node = await start();
    for (const ttl of [HOUR, 30 * DAY, HOUR, 29 * DAY, 3650 * DAY]) await node.signer(NOON + ttl);
    expect(store.count("extendTokens")).toBe(3);
    expect(store.records[0]?.tokensExpireTime?.getTime()).toBeGreaterThanOrEqual(NOON + 3650 * DAY);
  });

  test("is the new one after the node has received a rotation", async () => {
    const { context, start } = setUp();
    const node = await start();
    const { kid } = await rotateSigningKey(context());
    expect((await node.signer(NOON + HOUR)).kid).not.toBe(kid);
    await node.reload();
    expect((await node.signer(NOON + HOUR)).kid).toBe(kid);
  });

  test("may be the old one until the node receives the rotation, and its tokens are valid everywhere", async () => {
    const { context, start } = setUp();
    const [node, other] = [await start(), await start()];
    await rotateSigningKey(context());
    await other.reload();
    const { kid } = await node.signer(NOON + HOUR);
    expect((await other.jwks()).keys.map((key) => key.kid)).not.toContain(kid);
    expect(await other.publicKey(kid)).toBeDefined();
    expect((await other.jwks()).keys.map((key) => key.kid)).toContain(kid);
  });
});

describe("the JWKS", () => {
  test("contains a retired key until its last token has expired, and the newest key first", async () => {
    const { clock, context, start } = setUp();
    const node = await start();
    const old = await node.signer(NOON + HOUR);
    clock.time += MINUTE;
    const { kid } = await rotateSigningKey(context());
    await node.reload();
    expect((await node.jwks()).keys.map((key) => key.kid)).toEqual([kid, old.kid]);
    clock.time = NOON + HOUR;
    expect((await node.jwks()).keys.map((key) => key.kid)).toEqual([kid, old.kid]);
    clock.time = NOON + 3 * DAY;
    expect((await node.jwks()).keys.map((key) => key.kid)).toEqual([kid]);
  });
});

describe("a revoked key", () => {
  /** A node that notices changes when `version` is incremented. */
  async function nodeOf({ start }: ReturnType<typeof setUp>) {
    const state = { version: 0, lost: 0 };
    const onLost = () => {
      state.lost++;
    };
    const node = await start({ version: () => state.version, onLost });
    return { node, state };
  }

  test("is not returned from the notification on, which the revocation awaits, nor published", async () => {
    const suite = setUp();
    const { node, state } = await nodeOf(suite);
    const { kid } = await node.signer(NOON + HOUR);
    const { replacement } = await revokeSigningKey(suite.context(), kid);
    expect(node.hasCurrentPublicKeys()).toBe(true);
    state.version++;
    expect(node.hasCurrentPublicKeys()).toBe(false);
    // Only for stale verdicts.
    expect(node.lastPublicKey(kid)).toBeDefined();
    const { release } = suite.store.hold("list");
    const key = node.publicKey(kid);
    expect(await isPending(key)).toBe(true);
    release();
    expect(await key).toBeUndefined();
    expect(state.lost).toBe(1);
    expect(node.lastPublicKey(kid)).toBeUndefined();
    expect((await node.jwks()).keys.map((one) => one.kid)).toEqual([replacement]);
    expect((await node.signer(NOON + HOUR)).kid).toBe(replacement);
  });

  test("is replaced by one with its algorithm if it is the active one, and by none if it is not", async () => {
    const { context, start, store } = setUp();
    const { kid: first } = await (await start({ algorithm: "ES256" })).signer(NOON + HOUR);
    await rotateSigningKey(context());
    const [active] = newestFirst(await store.list()).filter(({ retireTime }) => retireTime === null);
    expect(await revokeSigningKey(context({ algorithm: "EdDSA" }), first)).toEqual({ replacement: null });
    const { replacement } = await revokeSigningKey(context({ algorithm: "EdDSA" }), active?.kid ?? "");
    expect(await store.list()).toMatchObject([{ kid: replacement, retireTime: null, publicJwk: { alg: "ES256" } }]);
  });

  test("must exist; the store is asked nevertheless, so that an earlier revocation is propagated", async () => {
    const { context, start, store } = setUp();
    await start();
    const before = await store.list();
    const unknown = revokeSigningKey(context(), unknownKid());
    await expect(unknown).rejects.toThrow(/^kid: signing key [\w-]{43} does not exist or is already revoked$/);
    expect(store.count("revoke")).toBe(1);
    expect(await store.list()).toEqual(before);
  });

  test("that is active must unwrap, unless forced; a retired one need not", async () => {
    const { context, start, store } = setUp();
    const { kid: first } = await (await start()).signer(NOON + HOUR);
    const { kid: second } = await rotateSigningKey(context());
    const other = context({ ring: ringOf(roots[1]) });
    await expect(revokeSigningKey(other, second)).rejects.toThrow(/cannot be unwrapped/);
    expect(await revokeSigningKey(other, first)).toEqual({ replacement: null });
    expect(await store.list()).toMatchObject([{ kid: second }]);
    const { replacement } = await revokeSigningKey(other, second, { force: true });
    expect(await store.list()).toMatchObject([{ kid: replacement }]);
  });

  test("is rejected also by a node that cannot use the new active key; its other keys still verify", async () => {
    const suite = setUp();
    const { node, state } = await nodeOf(suite);
    const { kid: retired } = await node.signer(NOON + HOUR);
    const { kid: active } = await rotateSigningKey(suite.context());
    state.version++;
    await node.reload();
    await revokeSigningKey(suite.context({ ring: ringOf(roots[1]) }), active, { force: true });
    state.version++;
    await expect(node.reload()).rejects.toThrow(/cannot be unwrapped/);
    expect(await node.publicKey(retired)).toBeDefined();
    expect(node.lastPublicKey(active)).toBeUndefined();
    expect((await node.jwks()).keys.map(({ kid }) => kid)).toEqual([retired]);
    expect(node.activeAlgorithm).toBeNull();
    await expect(Promise.resolve(node.signer(NOON + HOUR))).rejects.toThrow(/cannot be unwrapped/);
  });

  test("signs nothing if it is revoked while the expiry of its token is recorded", async () => {
    const suite = setUp();
    const { node, state } = await nodeOf(suite);
    const { kid } = await node.signer(NOON + HOUR);
    const { release } = suite.store.hold("extendTokens");
    const signer = node.signer(NOON + 10 * DAY);
    const { replacement } = await revokeSigningKey(suite.context(), kid);
    state.version++;
    release();
    expect((await signer).kid).toBe(replacement);
  });
});

describe("under another root secret", () => {
  test("a node does not start, and reports the remedy", async () => {
    const { start } = setUp();
    await start();
    const failure = start({ ring: ringOf(roots[1]) });
    await expect(failure).rejects.toThrow(
      /it was not wrapped with any configured root secret, current or retired.* `keyhold signing-keys rotate`/,
    );
  });

  test("the signing key is not rotated unless requested", async () => {
    const { store, context, start } = setUp();
    await start();
    const before = await store.list();
    await expect(rotateSigningKey(context({ ring: ringOf(roots[1]) }))).rejects.toThrow(/rotate --force/);
    expect(await store.list()).toEqual(before);
  });

  test("keys are wrapped again, and then the old root secret may be dropped", async () => {
    const { context, start } = setUp();
    const before = (await start()).jwks();
    expect(await rewrapSigningKeys(context({ ring: ringOf(roots[1]) }))).toBe(0);
    expect(await rewrapSigningKeys(context({ ring: ringOf(roots[1], roots[0]) }))).toBe(1);
    expect(await rewrapSigningKeys(context({ ring: ringOf(roots[1], roots[0]) }))).toBe(0);
    expect((await start({ ring: ringOf(roots[1]) })).jwks()).toEqual(before);
  });

  test("a node starts if the old root secret is a retired one", async () => {
    const { start } = setUp();
    const before = await start();
    const after = await start({ ring: ringOf(roots[1], roots[0]) });
    expect(after.jwks()).toEqual(before.jwks());
  });

  test("a running node continues with its keys", async () => {
    const { context, start } = setUp();
    const node = await start();
    const { kid } = await node.signer(NOON + HOUR);
    await rotateSigningKey(context({ ring: ringOf(roots[1]) }), { force: true });
    await expect(node.reload()).rejects.toThrow(/cannot be unwrapped/);
    expect((await node.signer(NOON + HOUR)).kid).toBe(kid);
    expect(await node.publicKey(kid)).toBeDefined();
  });

  test("a retired key is omitted and reported once", async () => {
    const { context, start } = setUp();
    const { kid } = await (await start()).signer(NOON + HOUR);
    const { kid: current } = await rotateSigningKey(context({ ring: ringOf(roots[1]) }), { force: true });
    const told: string[] = [];
    const node = await start({ ring: ringOf(roots[1]), onUnusable: (unusable) => told.push(unusable) });
    await node.reload();
    expect(await node.publicKey(kid)).toBeUndefined();
    expect((await node.jwks()).keys.map((key) => key.kid)).toEqual([current]);
    expect(told).toEqual([kid]);
  });
});
