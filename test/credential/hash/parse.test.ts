import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { parseRawKeyHash, type RawKeyHashInput } from "../../../src/credential/hash/parse.ts";
import { KeyholdError } from "../../../src/domain/errors.ts";

const SHA256 = createHash("sha256").update("raw key").digest();

/** Returns the violations of an input, as `field: description`. */
function violationsOf(input: RawKeyHashInput): string[] {
  try {
    parseRawKeyHash(input);
  } catch (error) {
    if (error instanceof KeyholdError && error.code === "INVALID_ARGUMENT") {
      return error.violations.map(({ field, description }) => `${field}: ${description}`);
    }
    throw error;
  }
  return [];
}

describe("a fast hash", () => {
  test.each([
    ["HEX", SHA256.toString("hex")],
    ["HEX", SHA256.toString("hex").toUpperCase()],
    ["BASE64", SHA256.toString("base64")],
    ["BASE64", SHA256.toString("base64").replace("=", "")],
    ["BASE64URL", SHA256.toString("base64url")],
    ["BASE64URL", `${SHA256.toString("base64url")}=`],
  ] as const)("is decoded from %s %s", (encoding, value) => {
    const parsed = parseRawKeyHash({ algorithm: "SHA256", value, encoding, prefix: "pepper:", suffix: "" });
    expect(Buffer.from(parsed.output)).toEqual(SHA256);
    expect(parsed.parameters).toBeNull();
    expect(parsed.scheme).toEqual({ algorithm: "SHA256", prefix: "pepper:", suffix: "", hmacKeyId: null });
  });

  test("needs the key of an HMAC, and no other has one", () => {
    const value = SHA256.toString("hex");
    expect(violationsOf({ algorithm: "HMAC_SHA256", value, encoding: "HEX" })).toEqual([
      "raw_key_hash.hmac_key_id: is required with HMAC_SHA256: create the key of the HMAC first",
    ]);
    expect(violationsOf({ algorithm: "SHA256", value, encoding: "HEX", hmacKeyId: "pepper" })).toEqual([
      "raw_key_hash.hmac_key_id: must be absent, because SHA256 has no key: is the algorithm HMAC_SHA256 or HMAC_SHA512?",
    ]);
    const { scheme } = parseRawKeyHash({ algorithm: "HMAC_SHA256", value, encoding: "HEX", hmacKeyId: "pepper" });
    expect(scheme).toEqual({ algorithm: "HMAC_SHA256", prefix: "", suffix: "", hmacKeyId: "pepper" });
  });
});

test.each([
  ["$2b$12$abcdefghijklmnopqrstuuXxgQmYw1qzYqF0oRkBzOeUrX9mHn1mK", "BCRYPT", "$2b$12$abcdefghijklmnopqrstuu"],
  [
    "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "ARGON2",
    "$argon2id$v=19$m=65536,t=3,p=4,l=32$c2FsdHNhbHQ",
  ],
  ["$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA", "SCRYPT", "$scrypt$ln=15,r=8,p=1,l=16$c2FsdHNhbHQ"],
  ["$pbkdf2-sha256$29000$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA", "PBKDF2", "$pbkdf2-sha256$i=29000,l=16$c2FsdHNhbHQ"],
])("%s is %s", (phc, algorithm, parameters) => {
  const parsed = parseRawKeyHash({ phc });
  expect(parsed.scheme).toEqual({ algorithm, prefix: "", suffix: "", hmacKeyId: null });
  expect(parsed.parameters).toBe(parameters);
});

test("every violation is named", () => {
  const input = { algorithm: "SHA512", value: SHA256.toString("hex"), encoding: "HEX", prefix: "\ud800" } as const;
  expect(violationsOf(input)).toEqual([
    "raw_key_hash.value: has 32 bytes, but SHA512 has 64: is the algorithm SHA256, SHA512_256 or HMAC_SHA256?",
    "raw_key_hash.prefix: must be well-formed Unicode",
  ]);
});
