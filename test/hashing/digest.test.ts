import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { digestAll } from "../../src/credential/digest.ts";
import type { HashScheme } from "../../src/domain/raw-key-hash.ts";
import { fastDigests, lookupPrefixDigests, prefixDigests, rawKeyHashDigests } from "../../src/hashing/digest.ts";
import { parseLookupPrefix } from "../../src/hashing/input/lookup-prefix.ts";
import { parseRawKeyHash } from "../../src/hashing/input/raw-key-hash.ts";
import { FAST_SCHEMES } from "./samples.ts";
import { RING, storedPhc } from "./slow/samples.ts";

const RAW_KEY = "raw kéy";

/** Returns the hash of a raw key as Node computes it. */
function hashOf(rawKey: string, { algorithm, prefix, suffix, hmacKey }: HashScheme): Buffer {
  const name = algorithm.replace("HMAC_", "").replace("_", "-").toLowerCase();
  const hash = hmacKey === null ? createHash(name) : createHmac(name, hmacKey);
  return hash.update(prefix).update(rawKey).update(suffix).digest();
}

function importDigests(rawKey: string, { schemeId: _, hmacKey: __, ...spec }: HashScheme) {
  const value = hashOf(rawKey, { ...spec, schemeId: 0, hmacKey: __ }).toString("hex");
  return rawKeyHashDigests(parseRawKeyHash({ ...spec, value, encoding: "HEX" }), RING);
}

test.each(FAST_SCHEMES)(
  "a raw key has the digests under which its hash by scheme $schemeId, $algorithm, was stored",
  (scheme) => {
    const digests = fastDigests(RAW_KEY, scheme, RING);
    expect(digests).toEqual(importDigests(RAW_KEY, scheme));
    expect(digests.map(({ keyId }) => keyId)).toEqual(RING.all.map(({ id }) => id));
    for (const other of [`${RAW_KEY} `, RAW_KEY.slice(1), RAW_KEY.normalize("NFD")]) {
      expect(fastDigests(other, scheme, RING)).not.toEqual(digests);
    }
  },
);

test("the digests of a raw key, its hashes and its prefixes are all distinct", () => {
  const { scheme: slow, secret } = storedPhc(`$2b$04$${"a".repeat(21)}u${"a".repeat(30)}u`);
  const all = [
    ...digestAll(RAW_KEY, RING),
    ...FAST_SCHEMES.flatMap((scheme) => fastDigests(RAW_KEY, scheme, RING)),
    ...prefixDigests(RAW_KEY, 7, RING),
    ...prefixDigests(RAW_KEY, 8, RING),
    secret.digest,
  ].map(({ digest }) => Buffer.from(digest).toString("hex"));
  expect(new Set(all).size).toBe(all.length);
  expect(all).toHaveLength(RING.all.length * (1 + FAST_SCHEMES.length + 2) + 1);
  expect(fastDigests(RAW_KEY, slow, RING)).toEqual([]);
});

test("schemes that differ in one part have other digests of the same hash", () => {
  const [base] = FAST_SCHEMES;
  const others = [{ prefix: "a" }, { suffix: "a" }, { hmacKeyId: "a" }, { algorithm: "SHA512_256" }] as const;
  const output = new Uint8Array(32);
  const digests = [{}, ...others].map((change) =>
    rawKeyHashDigests({ scheme: { ...(base as HashScheme), ...change }, parameters: null, output }, RING),
  );
  expect(new Set(digests.map(([first]) => Buffer.from(first?.digest ?? []).toString("hex"))).size).toBe(5);
});

test("a prefix is looked up by its bytes", () => {
  const prefix = parseLookupPrefix("raw kéy");
  expect(prefixDigests("raw kéy and more", 8, RING)).toEqual(lookupPrefixDigests(prefix, RING));
  expect(prefixDigests(prefix, 8, RING)).toEqual(lookupPrefixDigests(prefix, RING));
  expect(prefixDigests("raw key", 8, RING)).toEqual([]);
});

test("an HMAC without its key has no digests, nor has malformed Unicode", () => {
  expect(fastDigests(RAW_KEY, { ...(FAST_SCHEMES[4] as HashScheme), hmacKey: null }, RING)).toEqual([]);
  for (const scheme of FAST_SCHEMES) expect(fastDigests("\ud800", scheme, RING)).toEqual([]);
  expect(prefixDigests("longer than 8 \ud800", 8, RING)).toEqual([]);
});
