import fc from "fast-check";
import { expect, test } from "vitest";
import { HASH_ALGORITHMS, TEXT_ENCODINGS } from "../../../src/domain/raw-key-hash.ts";
import { FAST_ALGORITHMS, type FastHashAlgorithm } from "../../../src/hashing/algorithms.ts";
import { parseHmacKey } from "../../../src/hashing/input/hmac-key.ts";
import { parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";
import { formatParameters, SLOW_FORMATS, type SlowHashParameters } from "../../../src/hashing/phc/parameters.ts";
import { parseStoredParameters } from "../../../src/hashing/phc/stored-parameters.ts";
import { violationsOf } from "./violations.ts";

const RUNS = { numRuns: 2_000 };

const algorithms = Object.keys(FAST_ALGORITHMS) as FastHashAlgorithm[];
const bytes = (minLength: number, maxLength = minLength) => fc.uint8Array({ minLength, maxLength });

/** Each way to write bytes. */
const ENCODERS = {
  HEX: [(data: Buffer) => data.toString("hex"), (data: Buffer) => data.toString("hex").toUpperCase()],
  BASE64: [(data: Buffer) => data.toString("base64"), (data: Buffer) => data.toString("base64").replace(/=+$/, "")],
  BASE64URL: [
    (data: Buffer) => data.toString("base64url"),
    (data: Buffer) => data.toString("base64").replaceAll("+", "-").replaceAll("/", "_"),
  ],
} as const;

const encoded = fc.record({
  encoding: fc.constantFrom("HEX", "BASE64", "BASE64URL"),
  form: fc.constantFrom(0, 1),
});

test("every hash is decoded from every encoding of it", () => {
  const hashes = fc
    .constantFrom(...algorithms)
    .chain((algorithm) =>
      fc.record({ algorithm: fc.constant(algorithm), data: bytes(FAST_ALGORITHMS[algorithm].size) }),
    );
  fc.assert(
    fc.property(hashes, encoded, ({ algorithm, data }, { encoding, form }) => {
      const value = ENCODERS[encoding][form]?.(Buffer.from(data)) ?? "";
      const hmacKeyId = FAST_ALGORITHMS[algorithm].isKeyed ? "key" : null;
      expect(new Uint8Array(parseRawKeyHash({ algorithm, value, encoding, hmacKeyId }).output)).toEqual(data);
    }),
    RUNS,
  );
});

test("every key of an HMAC is decoded from every encoding of it", () => {
  fc.assert(
    fc.property(bytes(1, 31), encoded, (data, { encoding, form }) => {
      const text = ENCODERS[encoding][form]?.(Buffer.from(data)) ?? "";
      expect(new Uint8Array(parseHmacKey(text, encoding))).toEqual(data);
    }),
    RUNS,
  );
});

test("two texts of one value are distinct only in case and padding", () => {
  const digits = fc.string({ unit: fc.constantFrom(..."ABCDxyz0189+/=".split("")), minLength: 42, maxLength: 45 });
  fc.assert(
    fc.property(digits, (value) => {
      if (violationsOf(() => parseRawKeyHash({ algorithm: "SHA256", value, encoding: "BASE64" })).length > 0) return;
      const { output } = parseRawKeyHash({ algorithm: "SHA256", value, encoding: "BASE64" });
      expect(Buffer.from(output).toString("base64").replace("=", "")).toBe(value.replace("=", ""));
    }),
    RUNS,
  );
});

const parameters: fc.Arbitrary<SlowHashParameters> = fc
  .constantFrom(...(Object.keys(SLOW_FORMATS) as (keyof typeof SLOW_FORMATS)[]))
  .chain((id) => {
    const limits = Object.entries(SLOW_FORMATS[id].parameters);
    const values = fc.record(
      Object.fromEntries(limits.map(([name, { min, max }]) => [name, fc.integer({ min, max })])),
    );
    const size = id === "2b" ? fc.constant(23) : fc.integer({ min: 16, max: id.startsWith("pbkdf2") ? 20 : 64 });
    return fc.record({ id: fc.constant(id), values, salt: id === "2b" ? bytes(16) : bytes(8, 64), size });
  });

test("parameters are stored as text of at most 200 characters, and read again", () => {
  fc.assert(
    fc.property(parameters, (one) => {
      const text = formatParameters(one);
      expect(text.length).toBeLessThanOrEqual(200);
      const read = parseStoredParameters(text);
      expect({ ...read, salt: new Uint8Array(read.salt) }).toEqual(one);
    }),
    RUNS,
  );
});

/** Text that looks like hashes, with faults. */
const pieces = fc.constantFrom(
  ...[
    "$",
    "$2b$",
    "$2y$12$",
    "$argon2id$",
    "v=19$",
    "m=65536,t=3,p=4",
    "$scrypt$",
    "ln=15,r=8,p=1",
    "$pbkdf2-sha256$",
    "i=600000",
    "29000",
  ],
  ...[
    ",",
    "=",
    ":",
    "+",
    "-",
    ".",
    "c2FsdHNhbHQ",
    "A".repeat(43),
    "0f".repeat(32),
    "a".repeat(53),
    "é",
    "\ud800",
    " ",
    "\0",
  ],
);
const texts = fc.oneof(
  fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("")),
  fc.string({ maxLength: 80 }),
  fc.string({ unit: "binary", maxLength: 80 }),
);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

test("any input is accepted or refused with INVALID_ARGUMENT, which does not quote it", () => {
  const inputs = fc.record({
    algorithm: optional(fc.constantFrom(...HASH_ALGORITHMS)),
    value: optional(texts),
    encoding: optional(fc.constantFrom(...TEXT_ENCODINGS)),
    prefix: optional(texts),
    suffix: optional(texts),
    hmacKeyId: optional(texts),
    phc: optional(texts),
  });
  fc.assert(
    fc.property(inputs, (input) => {
      for (const violation of violationsOf(() => parseRawKeyHash(input))) {
        expect(violation).not.toContain("SECRET");
        expect(violation).toMatch(/^raw_key_hash(?:\.(?:algorithm|value|encoding|prefix|suffix|hmac_key_id|phc))?: \S/);
      }
    }),
    { numRuns: 20_000 },
  );
});

test("a phc alone is accepted or refused", () => {
  fc.assert(
    fc.property(texts, (phc) => {
      const violations = violationsOf(() => parseRawKeyHash({ phc }));
      if (violations.length === 0) expect(parseRawKeyHash({ phc }).parameters).toMatch(/^\$/);
    }),
    { numRuns: 20_000 },
  );
});
