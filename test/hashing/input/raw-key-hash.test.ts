import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { parseRawKeyHash, type RawKeyHashInput } from "../../../src/hashing/input/raw-key-hash.ts";
import { violationsOf as allViolationsOf } from "./violations.ts";

const hash = (algorithm: string) => createHash(algorithm).update("raw key").digest();
const SHA256 = hash("sha256");
const HEX = SHA256.toString("hex");
const BASE64 = SHA256.toString("base64");

const violationsOf = (input: RawKeyHashInput) => allViolationsOf(() => parseRawKeyHash(input));

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

  test("of an HMAC has the id of its key", () => {
    const value = SHA256.toString("hex");
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

const BCRYPT = `$2b$04$${"a".repeat(21)}u${"a".repeat(30)}u`;

const NAMES = ["sha256:", "sha256=", "SHA-256:", "hmac-sha256:", "md5:", "hex:", "base64:", "{SHA256}"];

/** What cannot be the value of a hash, by default of SHA-256. */
const VALUES: readonly RawKeyHashInput[] = [
  { value: HEX, encoding: "BASE64" },
  { value: HEX.toUpperCase(), encoding: "BASE64URL" },
  { algorithm: "SHA384", value: HEX, encoding: "BASE64" },
  { value: BASE64, encoding: "HEX" },
  { value: `-${BASE64.slice(1)}`, encoding: "HEX" },
  { value: "ä".repeat(64), encoding: "HEX" },
  { value: "ä".repeat(43), encoding: "BASE64" },
  { value: `-${BASE64.slice(1)}`, encoding: "BASE64" },
  { value: `/${BASE64.slice(1)}`, encoding: "BASE64URL" },
  { value: HEX.slice(1), encoding: "HEX" },
  { value: BASE64.slice(0, 41), encoding: "BASE64" },
  { value: `${hash("sha512").toString("base64").slice(0, -1)}`, encoding: "BASE64" },
  { value: `${BASE64}=`, encoding: "BASE64" },
  { value: `${"A".repeat(42)}B`, encoding: "BASE64" },
  { value: `${"_".repeat(42)}9`, encoding: "BASE64URL" },
  { value: ` ${HEX}`, encoding: "HEX" },
  { value: `${BASE64}\n`, encoding: "BASE64" },
  { value: `0x${HEX}`, encoding: "HEX" },
  { algorithm: "SHA512", value: Buffer.from(HEX).toString("base64"), encoding: "BASE64" },
  { value: HEX.slice(2), encoding: "HEX" },
  { value: hash("sha384").toString("base64"), encoding: "BASE64" },
  { value: hash("sha512").toString("hex"), encoding: "HEX" },
  { algorithm: "SHA384", value: HEX, encoding: "HEX" },
  { value: hash("md5").toString("hex"), encoding: "HEX" },
  { value: hash("sha1").toString("hex"), encoding: "HEX" },
  { value: hash("sha224").toString("hex"), encoding: "HEX" },
  { value: "$2b$12$abc", encoding: "HEX" },
  { value: "a".repeat(513), encoding: "HEX" },
  ...NAMES.map((name) => ({ value: name + HEX, encoding: "HEX" }) as const),
];

/** Fields that are missing, or that exclude each other. */
const FIELDS: readonly RawKeyHashInput[] = [
  {},
  { encoding: "HEX", prefix: "pepper", phc: "" },
  { algorithm: "SHA256" },
  { algorithm: "SHA256", value: "", encoding: "HEX" },
  { algorithm: "SHA256", value: HEX },
  { algorithm: null, value: HEX, encoding: null },
  { algorithm: "SHA256", value: HEX, encoding: "UTF8" },
  { algorithm: "ARGON2", value: HEX, encoding: "HEX" },
  { value: BCRYPT },
  { algorithm: "BCRYPT", value: "x", encoding: "HEX", hmacKeyId: "k", phc: BCRYPT },
  { algorithm: "HMAC_SHA256", value: HEX, encoding: "HEX" },
  { algorithm: "SHA256", value: HEX, encoding: "HEX", hmacKeyId: "pepper" },
  { algorithm: "SHA256", value: HEX, encoding: "HEX", prefix: "\ud800", suffix: "é".repeat(129) },
  { phc: BCRYPT, prefix: "p".repeat(60), suffix: "s".repeat(7) },
];

test("other inputs are rejected with the reason, and with what to do", async () => {
  const inputs = [...VALUES.map((input) => ({ algorithm: "SHA256" as const, ...input })), ...FIELDS];
  const lines = inputs.map((input) => `${JSON.stringify(input)}\n  ${violationsOf(input).join("\n  ")}\n`);
  await expect(lines.join("")).toMatchFileSnapshot("rejected-hashes.txt");
});

test("text that only begins like a name or 0x is base64", () => {
  for (const start of ["0x", "sha", "SHA5", "hmac", "md5", "hex", "base64"]) {
    const value = `${start}${"A".repeat(43 - start.length)}`;
    expect(violationsOf({ algorithm: "SHA256", value, encoding: "BASE64" })).toEqual([]);
    expect(violationsOf({ algorithm: "SHA256", value: `${value}=`, encoding: "BASE64URL" })).toEqual([]);
  }
  const value = `sha512${"A".repeat(80)}==`;
  expect(violationsOf({ algorithm: "SHA512", value, encoding: "BASE64" })).toEqual([]);
});

test("every violation is named", () => {
  const input = { algorithm: "SHA512", value: HEX, encoding: "HEX", prefix: "\ud800" } as const;
  expect(violationsOf(input)).toEqual([
    "raw_key_hash.value: has 32 bytes; HASH_ALGORITHM_SHA512 needs 64: did you mean HASH_ALGORITHM_SHA256, HASH_ALGORITHM_SHA512_256 or HASH_ALGORITHM_HMAC_SHA256?",
    "raw_key_hash.prefix: must be well-formed Unicode",
  ]);
});

test("text around the raw key goes with a salt too", () => {
  expect(parseRawKeyHash({ phc: BCRYPT, prefix: "p".repeat(66) }).scheme).toEqual({
    ...{ algorithm: "BCRYPT", prefix: "p".repeat(66), suffix: "", hmacKeyId: null },
  });
});
