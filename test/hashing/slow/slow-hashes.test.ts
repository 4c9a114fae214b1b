import { pbkdf2Sync, randomUUID, scryptSync } from "node:crypto";
import { hashSync } from "@node-rs/bcrypt";
import { afterEach, describe, expect, test } from "vitest";
import { deriveKeyRing } from "../../../src/domain/server-keys.ts";
import { parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";
import { HashWorker } from "../../../src/hashing/slow/hash-worker.ts";
import { createSlowHashes, type SlowHashes } from "../../../src/hashing/slow/slow-hashes.ts";
import type { HashTask } from "../../../src/hashing/slow/worker.ts";
import { systemRandom } from "../../../src/lib/random.ts";
import { RING, type StoredHash, stored, storedPhc } from "./samples.ts";

const started: SlowHashes[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((slow) => slow.close()));
});

function start(ring = RING): SlowHashes {
  const slow = createSlowHashes({ ring, random: systemRandom });
  started.push(slow);
  return slow;
}

function pbkdf2(message: string, iterations = 1000): string {
  const hash = pbkdf2Sync(message, "saltsalt", iterations, 32, "sha256");
  return `$pbkdf2-sha256$i=${iterations}$c2FsdHNhbHQ$${hash.toString("base64").replace("=", "")}`;
}

const HASH = storedPhc(pbkdf2("raw key"));
const bcrypt = (message: string) => storedPhc(hashSync(message, 4, Buffer.from("0123456789abcdef")));

test("only the raw key matches", async () => {
  const slow = start();
  expect(await slow.matches("raw key", HASH.scheme, HASH.secret)).toBe(true);
  expect(await slow.matches("raw kez", HASH.scheme, HASH.secret)).toBe(false);
  expect(slow.stats).toEqual({ running: 0, waiting: 0, computed: 2, failed: 0, rejected: 0, remembered: 0, shared: 0 });
});

test("PBKDF2 and scrypt ignore zero bytes at the end, and a raw key with them never matches", async () => {
  const slow = start();
  expect(pbkdf2("raw key\0")).toBe(pbkdf2("raw key"));
  expect(await slow.matches("raw key\0", HASH.scheme, HASH.secret)).toBe(false);
  const hash = scryptSync("raw key", "saltsalt", 32, { N: 1024 }).toString("base64").replace("=", "");
  const { scheme, secret } = storedPhc(`$scrypt$ln=10,r=8,p=1$c2FsdHNhbHQ$${hash}`);
  expect(await slow.matches("raw key\0\0", scheme, secret)).toBe(false);
  expect(slow.stats.computed).toBe(0);
  expect(await slow.matches("raw key", scheme, secret)).toBe(true);
});

test("what was put around the raw key counts", async () => {
  const slow = start();
  const { scheme, secret } = storedPhc(pbkdf2("before raw key after"), { prefix: "before ", suffix: " after" });
  expect(await slow.matches("raw key", scheme, secret)).toBe(true);
  expect(await slow.matches("before raw key after", scheme, secret)).toBe(false);
  // The texts are part of the digest: another scheme with the same concatenation is another hash.
  expect(await slow.matches(" raw key", { ...scheme, prefix: "before" }, secret)).toBe(false);
});

test("right and wrong pairs are remembered, and neither locks the key out", async () => {
  const slow = start();
  const { scheme, secret } = HASH;
  for (let attempt = 0; attempt < 100; attempt++) expect(await slow.matches("wrong", scheme, secret)).toBe(false);
  expect(slow.stats).toMatchObject({ computed: 1, remembered: 99 });
  expect(await slow.matches("raw key", scheme, secret)).toBe(true);
  expect(await slow.matches("raw key", scheme, secret)).toBe(true);
  expect(slow.stats).toMatchObject({ computed: 2, remembered: 100 });
  // Another hash of the same raw key is another pair.
  const other = storedPhc(pbkdf2("wrong"));
  expect(await slow.matches("wrong", other.scheme, other.secret)).toBe(true);
});

test("concurrent calls for one pair share a computation, and no others do", async () => {
  const slow = start();
  const { scheme, secret } = HASH;
  const same = Array.from({ length: 50 }, () => slow.matches("raw key", scheme, secret));
  expect(await Promise.all([...same, slow.matches("wrong", scheme, secret)])).toEqual([...same.map(() => true), false]);
  expect(slow.stats).toMatchObject({ computed: 2, shared: 49 });
});

test("a rejected call is counted, and is computed when it is repeated", async () => {
  const slow = start();
  const { scheme, secret } = HASH;
  const flood = Array.from({ length: 66 }, (_, n) => slow.matches(`wrong ${n}`, scheme, secret));
  await expect(slow.matches("raw key", scheme, secret)).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(slow.stats).toMatchObject({ running: 2, waiting: 64, rejected: 1 });
  expect(await Promise.all(flood)).not.toContain(true);
  expect(await slow.matches("raw key", scheme, secret)).toBe(true);
});

test("a flood of wrong raw keys for one key does not keep out those of others", async () => {
  const slow = start();
  const flood = Array.from({ length: 66 }, (_, n) => slow.matches(`wrong ${n}`, HASH.scheme, HASH.secret));
  const removed = expect(flood.at(-1)).rejects.toMatchObject({ code: "OVERLOADED" });
  const other = storedPhc(pbkdf2("other key"));
  expect(await slow.matches("other key", other.scheme, other.secret)).toBe(true);
  await removed;
  expect((await Promise.allSettled(flood)).filter(({ status }) => status === "rejected")).toHaveLength(1);
});

/** Slow hashes of which no more are computed than the test lets pass. */
function startHeld() {
  const held: (() => void)[] = [];
  let left = Number.POSITIVE_INFINITY;
  const resume = () => {
    for (; left > 0 && held.length > 0; left--) held.shift()?.();
  };
  class HeldWorker extends HashWorker {
    override async compute(task: HashTask): Promise<Uint8Array> {
      const passed = new Promise<void>((resolve) => held.push(resolve));
      resume();
      await passed;
      return super.compute(task);
    }
  }
  const slow = createSlowHashes({ ring: RING, random: systemRandom, startWorker: () => new HeldWorker() });
  started.push(slow);
  const pass = (count: number) => {
    left = count;
    resume();
  };
  return { slow, pass };
}

/** Presents wrong raw keys that were never presented before, one to each hash. */
async function presentWrong({ matches }: SlowHashes, hashes: readonly StoredHash[], source: string) {
  const results = hashes.map(({ scheme, secret }) => matches(`wrong ${randomUUID()}`, scheme, secret, source));
  for (const result of results) result.catch(() => undefined);
  return results;
}

describe.each([
  ["for one key, from another source", 1, "another"],
  ["for 70 other keys, from the same source", 71, "one"],
] as const)("150 wrong raw keys %s", (_, keys, source) => {
  test("do not delay the raw key of a key", async () => {
    const { slow, pass } = startHeld();
    const hashes = Array.from({ length: keys }, (_, key) => storedPhc(pbkdf2(`raw key ${key}`)));
    const { scheme, secret } = hashes.at(-1) ?? HASH;
    const attacked = hashes.slice(0, Math.max(1, keys - 1));
    const flood = Array.from({ length: 150 }, (_, index) => attacked[index % attacked.length] ?? HASH);
    for (const hash of attacked) await Promise.all(await presentWrong(slow, [hash], source));
    pass(0);
    await presentWrong(slow, flood, source);
    expect(slow.stats.rejected).toBeGreaterThan(80);
    const { computed } = slow.stats;
    const right = slow.matches(`raw key ${keys - 1}`, scheme, secret, "one");
    pass(3);
    expect(await right).toBe(true);
    expect(slow.stats.computed - computed).toBeLessThanOrEqual(4);
    pass(Number.POSITIVE_INFINITY);
  });
});

test("a raw key that is rejected in a flood of wrong ones keeps its place, and is accepted when it is tried again", async () => {
  const { slow, pass } = startHeld();
  const { scheme, secret } = HASH;
  await Promise.all(await presentWrong(slow, [HASH], "one"));
  const flood = () => presentWrong(slow, Array(150).fill(HASH), "one");
  const present = () => slow.matches("raw key", scheme, secret, "one");
  pass(0);
  await flood();
  await expect(present()).rejects.toMatchObject({ code: "OVERLOADED" });
  const { computed } = slow.stats;
  pass(2);
  await expect.poll(() => slow.stats.computed).toBe(computed + 2);
  await flood();
  const right = present();
  pass(Number.POSITIVE_INFINITY);
  expect(await right).toBe(true);
  // It was valid before, and needs no place any more.
  pass(0);
  await flood();
  expect(await present()).toBe(true);
  pass(Number.POSITIVE_INFINITY);
});

describe("bcrypt", () => {
  test("hashes at most 72 bytes, and a longer raw key never matches", async () => {
    const slow = start();
    const raw = `é${"k".repeat(70)}`;
    const { scheme, secret } = bcrypt(raw);
    expect(await slow.matches(raw, scheme, secret)).toBe(true);
    const computed = slow.stats.computed;
    // bcrypt itself would truncate it.
    expect(await slow.matches(`${raw}l`, scheme, secret)).toBe(false);
    expect(slow.stats.computed).toBe(computed);
  });

  test("ends at a zero byte, and a raw key with one never matches", async () => {
    const slow = start();
    const { scheme, secret } = bcrypt("raw key");
    expect(await slow.matches("raw key\0more", scheme, secret)).toBe(false);
    expect(slow.stats.computed).toBe(0);
  });

  test("counts the bytes of the text around the raw key", async () => {
    const slow = start();
    const phc = hashSync("p".repeat(60) + "k".repeat(12), 4, Buffer.from("0123456789abcdef"));
    const { scheme, secret } = storedPhc(phc, { prefix: "p".repeat(60) });
    expect(await slow.matches("k".repeat(12), scheme, secret)).toBe(true);
    expect(await slow.matches("k".repeat(13), scheme, secret)).toBe(false);
  });
});

test("a digest under a retired server key is verified, and one under an unknown key never is", async () => {
  const retired = stored(parseRawKeyHash({ phc: pbkdf2("raw key") }), { under: 1 });
  expect(retired.secret.digest.keyId).toBe(RING.all[1]?.id);
  expect(await start().matches("raw key", retired.scheme, retired.secret)).toBe(true);
  const others = deriveKeyRing({ current: Buffer.alloc(32, "others"), retired: [] }, "secret-digest");
  expect(await start(others).matches("raw key", retired.scheme, retired.secret)).toBe(false);
});

test("malformed Unicode never matches, and a fast hash is none of these", async () => {
  const slow = start();
  const { scheme, secret } = storedPhc(pbkdf2("\ufffd"));
  expect(await slow.matches("\ud800", scheme, secret)).toBe(false);
  const fast = { ...secret, hash: { schemeId: 1, parameters: null } };
  expect(await slow.matches("\ufffd", scheme, fast)).toBe(false);
});

test("changed parameters reject, and the raw key does not match", async () => {
  const slow = start();
  const { scheme, secret } = HASH;
  const change = (parameters: string) => ({ ...secret, hash: { schemeId: 1, parameters } });
  await expect(slow.matches("raw key", scheme, change("$1$x"))).rejects.toThrow("stored hash parameters are malformed");
  const huge = "$pbkdf2-sha256$i=2000000,l=32$c2FsdHNhbHQ";
  await expect(slow.matches("raw key", scheme, change(huge))).rejects.toThrow("i (iterations) is 2000000");
  const other = "$pbkdf2-sha256$i=1001,l=32$c2FsdHNhbHQ";
  expect(await slow.matches("raw key", scheme, change(other))).toBe(false);
});

test("what this server can compute is found out once", async () => {
  const slow = start();
  const scrypt = scryptSync("raw key", "saltsalt", 16, { N: 1024 }).toString("base64").replace(/=+$/, "");
  const samples = [`$scrypt$ln=10,r=8,p=1$c2FsdHNhbHQ$${scrypt}`, pbkdf2("raw key"), hashSync("raw key", 12)];
  for (const phc of [...samples, ...samples]) await slow.assertSupported(parseRawKeyHash({ phc }));
  await slow.assertSupported(parseRawKeyHash({ algorithm: "SHA256", value: "00".repeat(32), encoding: "HEX" }));
  expect(slow.stats).toMatchObject({ computed: 3 });
});
