import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { fastDigests } from "../../src/hashing/digest.ts";
import { type ParsedRawKeyHash, parseRawKeyHash, type RawKeyHashInput } from "../../src/hashing/input/raw-key-hash.ts";
import { createSlowHashes } from "../../src/hashing/slow/slow-hashes.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { RING, stored } from "./slow/samples.ts";

interface FastVector {
  readonly algorithm: "SHA256" | "SHA384" | "SHA512" | "SHA512_256" | "HMAC_SHA256" | "HMAC_SHA512";
  readonly encoding: "HEX" | "BASE64" | "BASE64URL";
  readonly value: string;
  readonly key: string;
  readonly prefix?: string;
  readonly suffix?: string;
  readonly hmac_key?: string;
}

interface SlowVector {
  readonly made_by: string;
  readonly phc: string;
  readonly key: string;
  readonly prefix?: string;
  readonly suffix?: string;
  readonly matches?: boolean;
}

interface Vectors {
  readonly maker: string;
  readonly fast: readonly FastVector[];
  readonly slow: readonly SlowVector[];
}

const FOLDER = join(import.meta.dirname, "../vectors/raw-key-hashes");
const read = (file: string) => JSON.parse(readFileSync(join(FOLDER, file), "utf8"));
const keys: Record<"raw_keys" | "hmac_keys", Record<string, string>> = read("keys.json");
const all: readonly Vectors[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".json") && file !== "keys.json")
  .map(read);

const slow = createSlowHashes({ ring: RING, random: systemRandom });
afterAll(() => slow.close());

const rawKeyOf = ({ key }: { readonly key: string }) => keys.raw_keys[key] ?? expect.fail(`no raw key ${key}`);

/** Raw keys that differ little. */
const nearMisses = (rawKey: string) => [`${rawKey}k`, `${rawKey.slice(0, -1)}!`, ` ${rawKey}`];

function hasFastHash(rawKey: string, hash: ParsedRawKeyHash, hmacKey: string | undefined): boolean {
  const bytes = hmacKey === undefined ? null : Buffer.from(keys.hmac_keys[hmacKey] ?? "", "hex");
  const { scheme, secret } = stored(hash, { hmacKey: bytes });
  return fastDigests(rawKey, scheme, RING).some(({ digest }) => Buffer.compare(digest, secret.digest.digest) === 0);
}

function inputOf({ key, hmac_key, ...hash }: FastVector): RawKeyHashInput {
  return { ...hash, hmacKeyId: hmac_key ?? null };
}

describe.each(all)("$maker", ({ fast, slow: slowVectors }) => {
  test(`its ${fast.length} hashes without a salt are those of the raw keys alone`, () => {
    for (const vector of fast) {
      const rawKey = rawKeyOf(vector);
      const hash = parseRawKeyHash(inputOf(vector));
      expect([vector, hasFastHash(rawKey, hash, vector.hmac_key)]).toEqual([vector, true]);
      const wrong = nearMisses(rawKey).filter((one) => hasFastHash(one, hash, vector.hmac_key));
      expect([vector, wrong]).toEqual([vector, []]);
    }
  });

  test(`its ${slowVectors.length} hashes with a salt are those of the raw keys alone`, async () => {
    for (const vector of slowVectors) {
      const { phc, prefix = "", suffix = "", matches = true } = vector;
      const { scheme, secret } = stored(parseRawKeyHash({ phc, prefix, suffix }));
      const rawKey = rawKeyOf(vector);
      expect([vector, await slow.matches(rawKey, scheme, secret, "a source")]).toEqual([vector, matches]);
      // Those at the limits take a second each.
      for (const other of vector.key === "limit" ? [] : nearMisses(rawKey)) {
        expect([vector, other, await slow.matches(other, scheme, secret, "a source")]).toEqual([vector, other, false]);
      }
    }
  });
});
