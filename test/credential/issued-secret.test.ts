import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatSecret, parseSecretFormat, parseSecretPrefix } from "../../src/credential/format.ts";
import { issueSecret, parseSecret } from "../../src/credential/issued-secret.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { anyAscii, anyText } from "../lib/any-text.ts";
import vectors from "../vectors/credential.json" with { type: "json" };
import { issueSample, OTHER_ROOTS, ROOTS, TAG_KEYS } from "./samples.ts";

const prefixes = fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/);
const keyIds = fc.uuid({ version: 7 });
const randoms = fc.uint8Array({ minLength: 32, maxLength: 32 });
const samples = fc.record({ prefix: prefixes, keyId: keyIds, random: randoms });

test.each(vectors.valid)("$secret equals that of another implementation", ({ prefix, key_id, random, secret }) => {
  expect(issueSample({ prefix, keyId: key_id, random: Buffer.from(random, "hex") })).toBe(secret);
  expect(parseSecret(secret, TAG_KEYS)).toEqual({ ok: true, prefix, keyId: key_id });
});

describe.each(Object.entries(vectors.invalid))("%s", (reason, texts) => {
  test.each(Object.entries(texts))("%s", (_, text) => {
    expect(parseSecret(text, TAG_KEYS)).toEqual({ ok: false, reason, message: expect.any(String) });
  });
});

test("parses what it issued", () => {
  fc.assert(
    fc.property(samples, (sample) => {
      const { prefix, keyId } = sample;
      expect(parseSecret(issueSample(sample), TAG_KEYS)).toEqual({ ok: true, prefix, keyId });
    }),
  );
});

test("normalizes a key id to lower case", () => {
  const keyId = "0198B2A4-7D3E-7C52-A1F0-5C9A3B7E2D10";
  const secret = issueSample({ prefix: "kh", keyId, random: new Uint8Array(32) });
  expect(parseSecret(secret, TAG_KEYS)).toMatchObject({ keyId: keyId.toLowerCase() });
});

test("no secret is issued for an invalid key id", () => {
  expect(() => issueSample({ prefix: "kh", keyId: "42", random: new Uint8Array(32) })).toThrow(TypeError);
});

test("two secrets of one key share no random bits", () => {
  const input = { prefix: parseSecretPrefix("kh"), keyId: vectors.valid[0]?.key_id ?? "", tagKeys: TAG_KEYS };
  const issue = () => issueSecret({ ...input, random: systemRandom });
  expect(new Set(Array.from({ length: 100 }, issue)).size).toBe(100);
});

test("secrets stay valid under a retired root secret, and new ones use the current one", () => {
  const rotated = deriveKeyRing({ current: OTHER_ROOTS.current, retired: [ROOTS.current] }, "secret-tag");
  const sample = { prefix: "kh", keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", random: new Uint8Array(32) };
  expect(parseSecret(issueSample(sample), rotated)).toMatchObject({ ok: true });
  const renewed = issueSample({ ...sample, tagKeys: rotated });
  expect(parseSecret(renewed, deriveKeyRing(OTHER_ROOTS, "secret-tag"))).toMatchObject({ ok: true });
  expect(parseSecret(renewed, TAG_KEYS)).toMatchObject({ ok: false, reason: "SIGNATURE_INVALID" });
});

test("any changed bit of the payload is a forgery, even with a valid checksum", () => {
  const secret = vectors.valid[0]?.secret ?? "";
  const format = parseSecretFormat(secret);
  if (!format) throw new Error("the sample is invalid");
  for (let bit = 0; bit < format.payload.length * 8; bit++) {
    const payload = format.payload.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
    const forged = formatSecret({ ...format, payload });
    expect(parseSecret(forged, TAG_KEYS)).toMatchObject({ ok: false, reason: "SIGNATURE_INVALID" });
  }
});

test("an error contains nothing of the text", () => {
  fc.assert(
    fc.property(samples, (sample) => {
      const secret = issueSample({ ...sample, tagKeys: deriveKeyRing(OTHER_ROOTS, "secret-tag") });
      for (const text of [secret, secret.slice(1)]) {
        const result = JSON.stringify(parseSecret(text, TAG_KEYS));
        expect(result).not.toContain(sample.keyId);
        expect(result).not.toContain(text.slice(-20));
      }
    }),
  );
});

test("any other text is rejected without an exception", () => {
  const texts = fc.oneof(
    anyText,
    anyAscii,
    prefixes.chain((prefix) => anyAscii.map((rest) => `${prefix}_v1_${rest}`)),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(parseSecret(text, TAG_KEYS)).toMatchObject({ ok: false, reason: "INVALID_FORMAT" });
    }),
    { numRuns: 500 },
  );
});

test("a very long text is rejected quickly", () => {
  expect(parseSecret(`kh_v1_${"0".repeat(10_000_000)}`, TAG_KEYS)).toMatchObject({ reason: "INVALID_FORMAT" });
  expect(parseSecret("a".repeat(10_000_000), TAG_KEYS)).toMatchObject({ reason: "INVALID_FORMAT" });
});
