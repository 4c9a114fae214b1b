import { createSecretKey, hkdfSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { deriveKeyRing, hmacSha256, parseRootSecret, SERVER_KEY_LABELS } from "../../src/domain/server-keys.ts";
import vectors from "../vectors/credential.json" with { type: "json" };

const older = Buffer.alloc(32, 1);
const old = Buffer.alloc(32, 2);
const current = Buffer.alloc(32, 3);

describe("HKDF-SHA-256 of the platform (RFC 5869 appendix A)", () => {
  const range = (from: number, to: number) => Buffer.from(Array.from({ length: to - from + 1 }, (_, i) => from + i));
  const cases = [
    {
      name: "A.1",
      secret: Buffer.alloc(22, 0x0b),
      salt: range(0x00, 0x0c),
      info: range(0xf0, 0xf9),
      output: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    },
    {
      name: "A.2",
      secret: range(0x00, 0x4f),
      salt: range(0x60, 0xaf),
      info: range(0xb0, 0xff),
      output:
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    },
    {
      name: "A.3",
      secret: Buffer.alloc(22, 0x0b),
      salt: Buffer.alloc(0),
      info: Buffer.alloc(0),
      output: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    },
  ];
  test.each(cases)("$name", ({ secret, salt, info, output }) => {
    const bytes = Buffer.from(hkdfSync("sha256", secret, salt, info, output.length / 2));
    expect(bytes.toString("hex")).toBe(output);
  });
});

test("HMAC-SHA-256 (RFC 4231 §4.3), in parts", () => {
  const key = { id: "", secret: createSecretKey("Jefe", "utf8") };
  const expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
  expect(hmacSha256(key, "what do ya want for nothing?").toString("hex")).toBe(expected);
  expect(hmacSha256(key, "what do ya ", Buffer.from("want for nothing?")).toString("hex")).toBe(expected);
});

test("there is a vector for every label", () => {
  expect(new Set(vectors.derivations.map(({ label }) => label))).toEqual(new Set(SERVER_KEY_LABELS));
});

test("keys and ids equal those of another implementation", () => {
  for (const { root, label, id, secret } of vectors.derivations) {
    const known = SERVER_KEY_LABELS.find((name) => name === label);
    if (known === undefined) throw new Error(`unknown label ${label}`);
    const key = deriveKeyRing({ current: Buffer.from(root, "hex"), retired: [] }, known).current;
    expect({ id: key.id, secret: key.secret.export().toString("hex") }).toEqual({ id, secret });
  }
});

test("labels and root secrets have distinct keys and ids, and no id reveals its key", () => {
  const keys = SERVER_KEY_LABELS.flatMap((label) => deriveKeyRing({ current, retired: [old, older] }, label).all);
  const secrets = keys.map(({ secret }) => secret.export().toString("hex"));
  expect(new Set(secrets).size).toBe(SERVER_KEY_LABELS.length * 3);
  expect(new Set(keys.map(({ id }) => id)).size).toBe(SERVER_KEY_LABELS.length * 3);
  for (const { id } of keys) expect(secrets.some((secret) => secret.includes(id))).toBe(false);
});

test("a ring has the current key first and finds each by its id", () => {
  const ring = deriveKeyRing({ current, retired: [old, older] }, "page-token");
  expect(ring.all).toHaveLength(3);
  expect(ring.all[0]).toBe(ring.current);
  for (const key of ring.all) expect(ring.find(key.id)).toBe(key);
  expect(ring.find("0000000000000000")).toBeUndefined();
});

test("a retired root secret keeps its keys", () => {
  const before = deriveKeyRing({ current: old, retired: [] }, "secret-digest").current;
  const after = deriveKeyRing({ current, retired: [old] }, "secret-digest").find(before.id);
  expect(after?.secret.equals(before.secret)).toBe(true);
});

test("a duplicate root secret counts once", () => {
  const ring = deriveKeyRing({ current, retired: [old, current, old] }, "secret-tag");
  expect(ring.all).toHaveLength(2);
  expect(ring.find(ring.current.id)).toBe(ring.current);
});

test("a root secret below 32 bytes is rejected", () => {
  expect(() => deriveKeyRing({ current: current.subarray(1), retired: [] }, "secret-tag")).toThrow(RangeError);
  expect(() => deriveKeyRing({ current, retired: [Buffer.alloc(0)] }, "secret-tag")).toThrow(RangeError);
});

describe("the text of a root secret", () => {
  const accepted = [
    { why: "64 hexadecimal digits", text: "8f1d0c5e9ab34276e1f0d9c8b7a695847362514f3e2d1c0bfae9d8c7b6a59483" },
    { why: "32 hexadecimal digits", text: "8f1d0c5e9ab34276e1f0d9c8b7a69584" },
    { why: "base64", text: "3q2+7/Z0c3Rpbmc9PUFCQ0RFRkdISUpLTE1OT1A=" },
    { why: "any text, also with inner white space", text: "dactyl, über 9 zephyr; quiz knobs!" },
  ];
  test.each(accepted)("may be $why", ({ text }) => {
    expect(Buffer.from(parseRootSecret(text)).toString("utf8")).toBe(text);
  });

  test("is used without the trailing line feed of its file", () => {
    const [sample] = accepted;
    expect(parseRootSecret(` ${sample?.text}\r\n`)).toEqual(parseRootSecret(sample?.text ?? ""));
  });

  const refused = [
    { why: "empty", text: "", message: "at least 32" },
    { why: "31 characters", text: "8f1d0c5e9ab34276e1f0d9c8b7a6958", message: "at least 32" },
    { why: "31 characters and white space", text: "8f1d0c5e9ab34276e1f0d9c8b7a6958 \n", message: "at least 32" },
    { why: "16 characters of two code units", text: "🔑".repeat(16), message: "at least 32" },
    { why: "zeros", text: "0".repeat(64), message: "must be random" },
    { why: "a repeated word", text: "secret!".repeat(8), message: "must be random" },
  ];
  test.each(refused)("may not be $why", ({ text, message }) => {
    const refusal = attempt(text);
    expect(refusal).toMatchObject({
      code: "INVALID_ARGUMENT",
      violations: [
        { field: "KEYHOLD_ROOT_SECRET", description: expect.stringContaining(message), reason: expect.any(String) },
      ],
    });
    if (text !== "") expect(refusal.message).not.toContain(text.trim());
  });

  test("an error names its setting", () => {
    expect(() => parseRootSecret("short", "KEYHOLD_ROOT_SECRETS_RETIRED")).toThrow(
      "KEYHOLD_ROOT_SECRETS_RETIRED: must",
    );
  });

  function attempt(text: string): Error {
    try {
      parseRootSecret(text);
    } catch (error) {
      if (error instanceof Error) return error;
    }
    throw new Error("was not refused");
  }
});
