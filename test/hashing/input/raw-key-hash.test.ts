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

describe("a value is refused with the reason", () => {
  const refusals: readonly [RawKeyHashInput, string][] = [
    [{ value: HEX, encoding: "BASE64" }, "has 64 hexadecimal digits: is the encoding TEXT_ENCODING_HEX?"],
    [
      { value: HEX.toUpperCase(), encoding: "BASE64URL" },
      "has 64 hexadecimal digits: is the encoding TEXT_ENCODING_HEX?",
    ],
    // As base64 it has the size of SHA-384.
    [
      { algorithm: "SHA384", value: HEX, encoding: "BASE64" },
      "has 64 hexadecimal digits: is the encoding TEXT_ENCODING_HEX?",
    ],
    [
      { value: BASE64, encoding: "HEX" },
      "is not hexadecimal: is the encoding TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL?",
    ],
    [{ value: `-${BASE64.slice(1)}`, encoding: "HEX" }, "is not hexadecimal: is the encoding TEXT_ENCODING_BASE64URL?"],
    [{ value: "ä".repeat(64), encoding: "HEX" }, "is not hexadecimal"],
    [
      { value: "ä".repeat(43), encoding: "BASE64" },
      "is not TEXT_ENCODING_BASE64: it has characters that are not in its alphabet",
    ],
    [
      { value: `-${BASE64.slice(1)}`, encoding: "BASE64" },
      "has characters of base64url, - or _: is the encoding TEXT_ENCODING_BASE64URL?",
    ],
    [
      { value: `/${BASE64.slice(1)}`, encoding: "BASE64URL" },
      "has characters of base64, + or /: is the encoding TEXT_ENCODING_BASE64?",
    ],
    [{ value: HEX.slice(1), encoding: "HEX" }, "has an odd number of hexadecimal digits, 63: is it cut off?"],
    [
      { value: BASE64.slice(0, 41), encoding: "BASE64" },
      "has an impossible number of TEXT_ENCODING_BASE64 digits, 41: is it cut off?",
    ],
    [
      { value: `${hash("sha512").toString("base64").slice(0, -1)}`, encoding: "BASE64" },
      "has incomplete padding: complete it, or remove it",
    ],
    [{ value: `${BASE64}=`, encoding: "BASE64" }, "has incomplete padding: complete it, or remove it"],
    [
      { value: `${"A".repeat(42)}B`, encoding: "BASE64" },
      "is not canonical TEXT_ENCODING_BASE64: unused bits at its end are not zero",
    ],
    [
      { value: `${"_".repeat(42)}9`, encoding: "BASE64URL" },
      "is not canonical TEXT_ENCODING_BASE64URL: unused bits at its end are not zero",
    ],
    [{ value: ` ${HEX}`, encoding: "HEX" }, "has white space around it: remove it"],
    [{ value: `${BASE64}\n`, encoding: "BASE64" }, "has white space around it: remove it"],
    [{ value: `0x${HEX}`, encoding: "HEX" }, "begins with 0x: remove it"],
    ...["sha256:", "sha256=", "SHA-256:", "hmac-sha256:", "md5:", "hex:", "base64:", "{SHA256}"].map(
      (name): [RawKeyHashInput, string] => [
        { value: name + HEX, encoding: "HEX" },
        "begins with the name of an algorithm or encoding: remove the name",
      ],
    ),
    // As base64 it has the size of SHA-512.
    [
      { algorithm: "SHA512", value: Buffer.from(HEX).toString("base64"), encoding: "BASE64" },
      "is 64 hexadecimal digits that were encoded again: decode it once, and set the encoding TEXT_ENCODING_HEX",
    ],
    [{ value: HEX.slice(2), encoding: "HEX" }, "has 31 bytes, but HASH_ALGORITHM_SHA256 has 32"],
    [
      { value: hash("sha384").toString("base64"), encoding: "BASE64" },
      "has 48 bytes, but HASH_ALGORITHM_SHA256 has 32: is the algorithm HASH_ALGORITHM_SHA384?",
    ],
    [
      { value: hash("sha512").toString("hex"), encoding: "HEX" },
      "has 64 bytes, but HASH_ALGORITHM_SHA256 has 32: is the algorithm HASH_ALGORITHM_SHA512 or HASH_ALGORITHM_HMAC_SHA512?",
    ],
    [
      { algorithm: "SHA384", value: HEX, encoding: "HEX" },
      "has 32 bytes, but HASH_ALGORITHM_SHA384 has 48: is the algorithm HASH_ALGORITHM_SHA256, HASH_ALGORITHM_SHA512_256 or HASH_ALGORITHM_HMAC_SHA256?",
    ],
    [
      { value: hash("md5").toString("hex"), encoding: "HEX" },
      "has 16 bytes, but HASH_ALGORITHM_SHA256 has 32: MD5, which is not supported, has 16",
    ],
    [
      { value: hash("sha1").toString("hex"), encoding: "HEX" },
      "has 20 bytes, but HASH_ALGORITHM_SHA256 has 32: SHA-1, which is not supported, has 20",
    ],
    [
      { value: hash("sha224").toString("hex"), encoding: "HEX" },
      "has 28 bytes, but HASH_ALGORITHM_SHA256 has 32: SHA-224, which is not supported, has 28",
    ],
    [
      { value: "$2b$12$abc", encoding: "HEX" },
      "begins with $, as a hash with a salt does: set phc instead, without algorithm and encoding",
    ],
    [{ value: "a".repeat(513), encoding: "HEX" }, "has 513 characters, but at most 512 are possible"],
  ];
  test.each(refusals)("%j: %s", (input, reason) => {
    expect(violationsOf({ algorithm: "SHA256", ...input })).toEqual([`raw_key_hash.value: ${reason}`]);
  });
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

describe("fields that are missing, or that exclude each other", () => {
  const BCRYPT = `$2b$04$${"a".repeat(21)}u${"a".repeat(30)}u`;
  const beside = "must be absent with phc, which contains the parameters of the hash";
  const refusals: readonly [RawKeyHashInput, readonly string[]][] = [
    [{}, [": must have algorithm, value and encoding, or phc"]],
    [{ encoding: "HEX", prefix: "pepper", phc: "" }, [": must have algorithm, value and encoding, or phc"]],
    [{ algorithm: "SHA256" }, [".value: is required with algorithm"]],
    [{ algorithm: "SHA256", value: "", encoding: "HEX" }, [".value: is required with algorithm"]],
    [
      { algorithm: "SHA256", value: HEX },
      [".encoding: is required with value: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL"],
    ],
    [
      { algorithm: null, value: HEX, encoding: null },
      [
        ".algorithm: is required with value",
        ".encoding: is required with value: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL",
      ],
    ],
    [
      { algorithm: "SHA256", value: HEX, encoding: "UTF8" },
      [
        ".encoding: TEXT_ENCODING_UTF8 is only for the key of an HMAC; allowed: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64, TEXT_ENCODING_BASE64URL",
      ],
    ],
    [
      { algorithm: "ARGON2", value: HEX, encoding: "HEX" },
      [
        ".algorithm: HASH_ALGORITHM_ARGON2 has a salt: set phc to the whole hash, without algorithm, value and encoding",
      ],
    ],
    [
      { value: BCRYPT },
      [".value: begins with $, as a hash with a salt does: set phc instead, without algorithm and encoding"],
    ],
    [
      { algorithm: "BCRYPT", value: "x", encoding: "HEX", hmacKeyId: "k", phc: BCRYPT },
      [`.algorithm: ${beside}`, `.value: ${beside}`, `.encoding: ${beside}`, `.hmac_key_id: ${beside}`],
    ],
    [
      { algorithm: "HMAC_SHA256", value: HEX, encoding: "HEX" },
      [".hmac_key_id: is required with HASH_ALGORITHM_HMAC_SHA256: create the key of the HMAC first"],
    ],
    [
      { algorithm: "SHA256", value: HEX, encoding: "HEX", hmacKeyId: "pepper" },
      [
        ".hmac_key_id: must be absent, because HASH_ALGORITHM_SHA256 has no key: is the algorithm HASH_ALGORITHM_HMAC_SHA256 or HASH_ALGORITHM_HMAC_SHA512?",
      ],
    ],
    [
      { algorithm: "SHA256", value: HEX, encoding: "HEX", prefix: "\ud800", suffix: "é".repeat(129) },
      [".prefix: must be well-formed Unicode", ".suffix: must have at most 256 bytes"],
    ],
    [
      { phc: BCRYPT, prefix: "p".repeat(60), suffix: "s".repeat(7) },
      [": prefix and suffix have more than 66 bytes, and bcrypt hashes at most 72 bytes together with the raw key"],
    ],
  ];
  test.each(refusals)("%j", (input, violations) => {
    expect(violationsOf(input)).toEqual(violations.map((violation) => `raw_key_hash${violation}`));
  });

  test("every violation is named, by the path that was passed", () => {
    const input = { algorithm: "SHA512", value: HEX, encoding: "HEX", prefix: "\ud800" } as const;
    expect(allViolationsOf(() => parseRawKeyHash(input, "requests[3].raw_key_hash"))).toEqual([
      "requests[3].raw_key_hash.value: has 32 bytes, but HASH_ALGORITHM_SHA512 has 64: is the algorithm HASH_ALGORITHM_SHA256, HASH_ALGORITHM_SHA512_256 or HASH_ALGORITHM_HMAC_SHA256?",
      "requests[3].raw_key_hash.prefix: must be well-formed Unicode",
    ]);
  });

  test("text around the raw key goes with a salt too", () => {
    expect(parseRawKeyHash({ phc: BCRYPT, prefix: "p".repeat(66) }).scheme).toEqual({
      ...{ algorithm: "BCRYPT", prefix: "p".repeat(66), suffix: "", hmacKeyId: null },
    });
  });
});
