import fc from "fast-check";
import { expect, test } from "vitest";
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { CREDENTIAL_KINDS, classify, looksLikeOurs } from "../../src/credential/kinds.ts";
import { looksLikeJwt } from "../../src/token/jwt/compact.ts";
import { looksLikeMacaroon } from "../../src/token/macaroon/text.ts";
import { anyAscii, anyText } from "../lib/any-text.ts";
import vectors from "../vectors/credential.json" with { type: "json" };
import { issueSample } from "./samples.ts";

const shapes = { prefix: parseSecretPrefix("kh"), looksLikeJwt, looksLikeMacaroon };
const keyId = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const issued = issueSample({ prefix: "kh", keyId, random: new Uint8Array(32) });
const foreign = issueSample({ prefix: "other", keyId, random: new Uint8Array(32) });
// RFC 7515 A.1, and the shortest well-formed macaroon: an identifier and a signature of 32 bytes.
const jwt = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UifQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const macaroon = Buffer.concat([Buffer.from("02020169000006" + "20", "hex"), Buffer.alloc(32, 5)]).toString(
  "base64url",
);

const SAMPLES = [
  { why: "an issued secret", text: issued, type: "ISSUED_API_KEY" },
  { why: "an issued secret with another prefix", text: foreign, type: "ISSUED_API_KEY" },
  { why: "the service's prefix alone", text: "kh_v1_", type: "ISSUED_API_KEY" },
  { why: "the service's prefix and other text", text: "kh_v1_é not base62", type: "ISSUED_API_KEY" },
  { why: "the service's prefix, wrong checksum", text: `${issued.slice(0, -1)}!`, type: "ISSUED_API_KEY" },
  { why: "another prefix, wrong checksum", text: `${foreign.slice(0, -6)}000000`, type: "IMPORTED_API_KEY" },
  { why: "another version", text: issued.replace("_v1_", "_v2_"), type: "IMPORTED_API_KEY" },
  { why: "a prefix that begins with the service's", text: "khx_v1_short", type: "IMPORTED_API_KEY" },
  { why: "the service's prefix in upper case", text: issued.toUpperCase(), type: "IMPORTED_API_KEY" },
  { why: "a JWT", text: jwt, type: "JWT" },
  { why: "a JWT without its signature", text: jwt.slice(0, jwt.lastIndexOf(".") + 1), type: "JWT" },
  { why: "three parts without a header", text: "a.b.c", type: "IMPORTED_API_KEY" },
  { why: "a macaroon", text: macaroon, type: "MACAROON" },
  { why: "a padded macaroon", text: `${macaroon}==`, type: "IMPORTED_API_KEY" },
  { why: "a key of another service", text: "sk_live_4eC39HqLyjWDarjtT1zdp7dc", type: "IMPORTED_API_KEY" },
  { why: "a UUID", text: keyId, type: "IMPORTED_API_KEY" },
  { why: "the empty text", text: "", type: "IMPORTED_API_KEY" },
];

test.each(SAMPLES)("$why is $type", ({ text, type }) => {
  expect(classify(text, shapes).type).toBe(type);
  expect(looksLikeOurs(text, shapes)).toBe(type !== "IMPORTED_API_KEY");
});

test("every kind has a sample", () => {
  expect(new Set(SAMPLES.map(({ type }) => type))).toEqual(new Set(CREDENTIAL_KINDS.map(({ type }) => type)));
});

test("a forged secret with a valid checksum is classified as issued, with any prefix", () => {
  const forgeries = Object.values(vectors.invalid.SIGNATURE_INVALID);
  expect(forgeries.length).toBeGreaterThan(3);
  for (const text of forgeries) expect(classify(text, shapes).type).toBe("ISSUED_API_KEY");
});

test("classifies every text by the first matching kind", () => {
  const texts = fc.oneof(
    anyText,
    anyAscii,
    anyAscii.map((text) => `kh_v1_${text}`),
    fc.base64String(),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const kind = classify(text, shapes);
      expect(CREDENTIAL_KINDS.filter(({ matches }) => matches(text, shapes))[0]).toBe(kind);
      expect(kind.type === "ISSUED_API_KEY").toBe(text.startsWith("kh_v1_"));
    }),
    { numRuns: 500 },
  );
});
