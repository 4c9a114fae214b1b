import { describe, expect, test } from "vitest";
import { parseHmacKey } from "../../../src/hashing/input/hmac-key.ts";
import { parseLookupPrefix } from "../../../src/hashing/input/lookup-prefix.ts";
import { violationsOf } from "./violations.ts";

describe("a lookup prefix", () => {
  test.each(["sk_liv", "ключ", "🔑é", "x".repeat(64)])("%s is accepted", (prefix) => {
    expect(parseLookupPrefix(prefix)).toBe(prefix);
  });

  test.each([
    ["", "lookup_prefix: has 0 bytes (UTF-8); it must have 6 to 64"],
    ["12345", "lookup_prefix: has 5 bytes (UTF-8); it must have 6 to 64"],
    ["é".repeat(33), "lookup_prefix: has 66 bytes (UTF-8); it must have 6 to 64"],
    ["prefix\ud83d", "lookup_prefix: must be well-formed Unicode"],
  ])("%j is refused", (prefix, violation) => {
    expect(violationsOf(() => parseLookupPrefix(prefix))).toEqual([violation]);
  });
});

describe("the key of an HMAC", () => {
  test.each([
    ["00ff", "HEX", [0x00, 0xff]],
    ["AP8=", "BASE64", [0x00, 0xff]],
    ["-_8", "BASE64URL", [0xfb, 0xff]],
    ["é", "UTF8", [0xc3, 0xa9]],
    // Hexadecimal digits may be the text of a key.
    ["00ff", "UTF8", [0x30, 0x30, 0x66, 0x66]],
    ["MDBmZg==", "BASE64", [0x30, 0x30, 0x66, 0x66]],
  ] as const)("%s is decoded from %s", (text, encoding, bytes) => {
    expect([...parseHmacKey(text, encoding)]).toEqual(bytes);
  });

  test("may be hexadecimal text in base64", () => {
    const key = Buffer.from("0f".repeat(32));
    expect(Buffer.from(parseHmacKey(key.toString("base64"), "BASE64"))).toEqual(key);
  });

  test.each([
    ["", "HEX", "key: is required"],
    ["00ff", null, "encoding: is required; set a TEXT_ENCODING_* value"],
    ["0f".repeat(32), "BASE64", "key: has 64 hexadecimal digits: did you mean TEXT_ENCODING_HEX?"],
    ["AP8=", "HEX", "key: is not hexadecimal: did you mean TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL?"],
    ["-_8", "BASE64", "key: has base64url characters (- or _): did you mean TEXT_ENCODING_BASE64URL?"],
    ["hmac-secret:00ff", "HEX", "key: begins with the name of an algorithm or encoding: remove the name"],
    ["\ud800", "UTF8", "key: must be well-formed Unicode"],
    ["00".repeat(1025), "HEX", "key: has 1025 bytes; it must have 1 to 1024"],
  ] as const)("%j as %s is refused", (text, encoding, violation) => {
    expect(violationsOf(() => parseHmacKey(text, encoding))).toEqual([violation]);
  });
});
