import fc from "fast-check";
import { expect, test } from "vitest";
import { digestAll, digestCurrent } from "../../src/credential/digest.ts";
import { isSameDigest, type SecretDigest } from "../../src/domain/key.ts";
import { deriveKeyRing, type KeyRing } from "../../src/domain/server-keys.ts";
import { anyText } from "../lib/any-text.ts";
import vectors from "../vectors/credential.json" with { type: "json" };
import { DIGEST_KEYS, OTHER_ROOTS, ROOTS } from "./samples.ts";

const ROTATED = deriveKeyRing({ current: OTHER_ROOTS.current, retired: [ROOTS.current] }, "secret-digest");
const wellFormed = anyText.map((text) => text.toWellFormed());

/** As verification compares them. */
function digestEquals(text: string, stored: SecretDigest, ring: KeyRing): boolean {
  return digestAll(text, ring).some((digest) => isSameDigest(digest, stored));
}

test.each(vectors.valid)("the digest of $secret equals that of another implementation", ({ secret, digest }) => {
  const stored = digestCurrent(secret, DIGEST_KEYS);
  expect(stored.keyId).toBe(DIGEST_KEYS.current.id);
  expect(Buffer.from(stored.digest).toString("hex")).toBe(digest);
});

test("a credential matches its own digest only", () => {
  fc.assert(
    fc.property(wellFormed, wellFormed, (text, other) => {
      const stored = digestCurrent(text, DIGEST_KEYS);
      expect(digestEquals(text, stored, DIGEST_KEYS)).toBe(true);
      expect(digestEquals(other, stored, DIGEST_KEYS)).toBe(other === text);
    }),
  );
});

test("a digest still matches after its root secret is retired", () => {
  const stored = digestCurrent("raw key", DIGEST_KEYS);
  expect(digestAll("raw key", ROTATED)).toEqual([digestCurrent("raw key", ROTATED), stored]);
  expect(digestAll("raw key", DIGEST_KEYS)).toEqual([stored]);
  expect(digestEquals("raw key", stored, ROTATED)).toBe(true);
});

test("a digest of a missing or different server key does not match", () => {
  const stored = digestCurrent("raw key", ROTATED);
  expect(digestEquals("raw key", stored, DIGEST_KEYS)).toBe(false);
  expect(digestEquals("raw key", { ...stored, keyId: DIGEST_KEYS.current.id }, ROTATED)).toBe(false);
});

test("a truncated or empty digest does not match", () => {
  const { keyId, digest } = digestCurrent("raw key", DIGEST_KEYS);
  expect(digestEquals("raw key", { keyId, digest: digest.subarray(0, 31) }, DIGEST_KEYS)).toBe(false);
  expect(digestEquals("raw key", { keyId, digest: new Uint8Array() }, DIGEST_KEYS)).toBe(false);
});

test("distinguishes a lone surrogate from U+FFFD", () => {
  const stored = digestCurrent("key \ufffd", DIGEST_KEYS);
  expect(digestEquals("key \ud800", stored, DIGEST_KEYS)).toBe(false);
  expect(digestAll("key \ud800", DIGEST_KEYS)).toEqual([]);
  expect(() => digestCurrent("key \ud800", DIGEST_KEYS)).toThrow("raw_key: must be well-formed Unicode");
});
