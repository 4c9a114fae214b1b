import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { digestAll } from "../../../src/credential/digest.ts";
import type { HashScheme } from "../../../src/domain/raw-key-hash.ts";
import { lookupPrefixDigests, rawKeyHashDigests } from "../../../src/hashing/digest.ts";
import { parseLookupPrefix } from "../../../src/hashing/input/lookup-prefix.ts";
import { parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";
import { createHashRecognition } from "../../../src/verify/by-hash/create-recognition.ts";
import { FAST_SCHEMES } from "../../hashing/samples.ts";
import { RING, storedPhc } from "../../hashing/slow/samples.ts";

const lookups = () => ({ schemes: FAST_SCHEMES, prefixLengths: [8] });
const recognition = createHashRecognition({
  ring: RING,
  lookups,
  lastLookups: lookups,
  slow: { matches: async (rawKey) => rawKey === "raw key" },
});

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
    const digests = recognition.fastDigests(RAW_KEY, scheme);
    expect(digests).toEqual(importDigests(RAW_KEY, scheme));
    expect(digests.map(({ keyId }) => keyId)).toEqual(RING.all.map(({ id }) => id));
    for (const other of [`${RAW_KEY} `, RAW_KEY.slice(1), RAW_KEY.normalize("NFD")]) {
      expect(recognition.fastDigests(other, scheme)).not.toEqual(digests);
    }
  },
);

test("the digests of a raw key, its hashes and its prefixes are all distinct", () => {
  const { scheme: slow, secret } = storedPhc(`$2b$04$${"a".repeat(21)}u${"a".repeat(30)}u`);
  const all = [
    ...digestAll(RAW_KEY, RING),
    ...FAST_SCHEMES.flatMap((scheme) => recognition.fastDigests(RAW_KEY, scheme)),
    ...recognition.prefixDigests(RAW_KEY, 7),
    ...recognition.prefixDigests(RAW_KEY, 8),
    secret.digest,
  ].map(({ digest }) => Buffer.from(digest).toString("hex"));
  expect(new Set(all).size).toBe(all.length);
  expect(all).toHaveLength(RING.all.length * (1 + FAST_SCHEMES.length + 2) + 1);
  expect(recognition.fastDigests(RAW_KEY, slow)).toEqual([]);
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
  expect(recognition.prefixDigests("raw kéy and more", 8)).toEqual(lookupPrefixDigests(prefix, RING));
  expect(recognition.prefixDigests(prefix, 8)).toEqual(lookupPrefixDigests(prefix, RING));
  expect(recognition.prefixDigests("raw key", 8)).toEqual([]);
});

test("an HMAC without its key has no digests, nor has malformed Unicode", () => {
  expect(recognition.fastDigests(RAW_KEY, { ...(FAST_SCHEMES[4] as HashScheme), hmacKey: null })).toEqual([]);
  for (const scheme of FAST_SCHEMES) expect(recognition.fastDigests("\ud800", scheme)).toEqual([]);
  expect(recognition.prefixDigests("longer than 8 \ud800", 8)).toEqual([]);
});

test("slow hashes and lookups are those that were passed", async () => {
  const { scheme, secret } = storedPhc(`$2b$04$${"a".repeat(21)}u${"a".repeat(30)}u`);
  expect(await recognition.matches("raw key", scheme, secret, "a source")).toBe(true);
  expect(await recognition.matches("other", scheme, secret, "a source")).toBe(false);
  expect(await recognition.lookups()).toEqual({ schemes: FAST_SCHEMES, prefixLengths: [8] });
});
