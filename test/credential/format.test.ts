import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatSecret,
  PAYLOAD_SIZE,
  parseSecretFormat,
  parseSecretPrefix,
  SECRET_PATTERN,
  SECRET_REGEXP,
} from "../../src/credential/format.ts";
import { anyText } from "../lib/any-text.ts";
import vectors from "../vectors/credential.json" with { type: "json" };

const prefixes = fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/).map((text) => parseSecretPrefix(text));
const payloads = fc.uint8Array({ minLength: PAYLOAD_SIZE, maxLength: PAYLOAD_SIZE });

test("the checksum is the CRC-32 of zlib", () => {
  expect(crc32("123456789")).toBe(0xcbf43926);
});

test("a printed secret parses", () => {
  fc.assert(
    fc.property(prefixes, payloads, (prefix, payload) => {
      expect(parseSecretFormat(formatSecret({ prefix, payload }))).toEqual({ prefix, payload });
    }),
  );
});

test("a parsed secret prints back byte for byte", () => {
  let parsed = 0;
  fc.assert(
    fc.property(fc.oneof(prefixes.chain(nearSecrets), anyText), (text) => {
      const format = parseSecretFormat(text);
      if (format === undefined) return;
      parsed++;
      expect(formatSecret(format)).toBe(text);
    }),
    { numRuns: 500 },
  );
  expect(parsed).toBeGreaterThan(50);
});

test("the pattern finds every complete secret in other text", () => {
  fc.assert(
    fc.property(prefixes, payloads, (prefix, payload) => {
      const secret = formatSecret({ prefix, payload });
      expect(`TOKEN="${secret}"; next`.match(new RegExp(`\\b${SECRET_PATTERN}\\b`))?.[0]).toBe(secret);
      expect(SECRET_REGEXP.test(secret)).toBe(true);
      expect(SECRET_REGEXP.test(`${secret}\n`)).toBe(false);
    }),
  );
});

test("a payload of another size is an internal error", () => {
  const prefix = parseSecretPrefix("kh");
  expect(() => formatSecret({ prefix, payload: new Uint8Array(PAYLOAD_SIZE + 8) })).toThrow(RangeError);
});

describe("any single typing error in a secret is rejected", () => {
  const secret = vectors.valid[0]?.secret ?? "";
  const positions = [...Array(secret.length).keys()];
  const characters = [...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), "é", "０", "\ud800"];
  const head = (position: number) => secret.slice(0, position);
  const tail = (position: number) => secret.slice(position);

  const SLIPS = [
    { slip: "a wrong character", edit: (at: number, character: string) => head(at) + character + tail(at + 1) },
    { slip: "one character more", edit: (at: number, character: string) => head(at) + character + tail(at) },
    { slip: "one missing", edit: (at: number) => head(at) + tail(at + 1) },
    {
      slip: "two exchanged",
      edit: (at: number) => head(at) + secret.charAt(at + 1) + secret.charAt(at) + tail(at + 2),
    },
  ];

  test.each(SLIPS)("$slip", ({ edit }) => {
    expect(parseSecretFormat(secret)).toBeDefined();
    const changed = positions.flatMap((at) => characters.map((character) => edit(at, character)));
    const accepted = changed.filter((text) => text !== secret && parseSecretFormat(text) !== undefined);
    expect(accepted).toEqual([]);
  });
});

describe("a prefix", () => {
  test.each(["k", "kh", "acme2", "v1", "abcdefghijklmnop"])("may be %s", (text) => {
    expect(parseSecretPrefix(text)).toBe(text);
  });

  test.each(["", "K", "1k", "k_", "k-h", "kh ", "kh\n", "é", "abcdefghijklmnopq"])("may not be %j", (text) => {
    expect(() => parseSecretPrefix(text)).toThrow("KEYHOLD_SECRET_PREFIX: must be");
  });
});

/** A secret whose block or checksum may be out of range, usually with a valid checksum. */
function nearSecrets(prefix: string): fc.Arbitrary<string> {
  const digits = fc.string({ unit: fc.constantFrom(..."0HLYyz"), minLength: 88, maxLength: 88 });
  return fc.oneof(
    digits.map((body) => `${prefix}_v1_${body}000000`),
    payloads.map((payload) => formatSecret({ prefix: parseSecretPrefix(prefix), payload })),
  );
}
