import { createPrivateKey, createPublicKey, createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { calculateJwkThumbprint, decodeProtectedHeader } from "jose";
import { describe, expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import {
  ALGORITHM_NAMES,
  ALGORITHMS,
  type AlgorithmName,
  type PublicSigningJwk,
  toPrivateKey,
  toPublicJwk,
} from "../../../src/token/jwt/algorithms.ts";
import { mintJwt } from "../../../src/token/jwt/mint.ts";
import { loadSigningKeys } from "../../../src/token/jwt/signing-keys.ts";
import { verifyJwt } from "../../../src/token/jwt/verify.ts";
import { generateSigningKey, rewrapSigningKey, unwrapSigningKey } from "../../../src/token/signing-key.ts";
import vector from "../../vectors/jwt-signing-key.json" with { type: "json" };
import { activeKey, CONTENT, HOUR, ISSUER, NOW, RING, random, record, ringOf, WRAP_KEY } from "./fixtures.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const storedRing = ringOf({ id: vector.wrapKey.id, secret: createSecretKey(vector.wrapKey.secret, "hex") });

/** The vector of an algorithm, as a record. */
function storedKey(alg: AlgorithmName) {
  const { publicJwk, wrapped, privateKey } = vector[alg];
  const { kid } = publicJwk;
  const record = { kid, publicJwk: publicJwk as PublicSigningJwk, wrapped: hex(wrapped), wrapKeyId: vector.wrapKey.id };
  return { alg, record, privateKey, wrapped };
}

const stored = storedKey("EdDSA").record;
const newKey = (algorithm: AlgorithmName = "EdDSA", wrapKey = WRAP_KEY) =>
  generateSigningKey(algorithm, wrapKey, random);

describe.each(ALGORITHM_NAMES.map(storedKey))("the stored form of a key for $alg", (stored) => {
  const { alg, record } = stored;

  test("equals the vector of another implementation", () => {
    const drawn = [hex(stored.privateKey), hex(vector.nonce)];
    const replayed = { bytes: () => drawn.shift() ?? expect.unreachable() };
    const { wrapped } = generateSigningKey(alg, storedRing.current, replayed);
    expect(Buffer.from(wrapped).toString("hex")).toBe(stored.wrapped);
  });

  test("unwraps to the private key of the RFC", () => {
    const jwk = unwrapSigningKey(record, storedRing).export({ format: "jwk" });
    expect(Buffer.from(jwk.d ?? "", "base64url").toString("hex")).toBe(stored.privateKey);
  });

  test("never reuses a nonce", () => {
    const nonces = Array.from({ length: 50 }, () => Buffer.from(newKey(alg).wrapped.subarray(1, 13)).toString("hex"));
    expect(new Set(nonces).size).toBe(50);
  });

  test("contains nothing of the private key", () => {
    const drawn: Uint8Array[] = [];
    const spied = { bytes: (size: number) => drawn[drawn.push(randomBytes(size)) - 1] ?? Buffer.alloc(0) };
    const { wrapped, publicJwk } = generateSigningKey(alg, WRAP_KEY, spied);
    expect(drawn.map((bytes) => bytes.length)).toEqual([32, 12]);
    expect(Buffer.from(wrapped).includes(drawn[0] ?? "none")).toBe(false);
    expect(Object.keys(publicJwk).toSorted()).toEqual(Object.keys(record.publicJwk).toSorted());
  });

  test("rejects any bit flip", () => {
    fc.assert(
      fc.property(fc.nat(record.wrapped.length * 8 - 1), (bit) => {
        const wrapped = Buffer.from(record.wrapped);
        wrapped[bit >> 3] = (wrapped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(() => unwrapSigningKey({ ...record, wrapped }, storedRing)).toThrow(KeyholdError);
      }),
    );
  });

  test.each([0, 1, 13, 44, 49, 60, 62])("rejects %i bytes", (size) => {
    const wrapped = Buffer.concat([record.wrapped, Buffer.alloc(1)]).subarray(0, size);
    expect(() => unwrapSigningKey({ ...record, wrapped }, storedRing)).toThrow(/unknown stored format/);
  });

  test("is wrapped under another root secret without a change of the key", () => {
    const next = ringOf({ id: "ffffffffffffffff", secret: createSecretKey(randomBytes(32)) }, storedRing.current);
    const rewrapped = rewrapSigningKey(record, next, random);
    expect(rewrapped).toMatchObject({ kid: record.kid, publicJwk: record.publicJwk, wrapKeyId: "ffffffffffffffff" });
    const { d } = unwrapSigningKey(rewrapped, ringOf(next.current)).export({ format: "jwk" });
    expect(Buffer.from(d ?? "", "base64url").toString("hex")).toBe(stored.privateKey);
  });

  test("the kid is the JWK thumbprint", async () => {
    const { kid, publicJwk } = newKey(alg);
    expect(kid).toBe(await calculateJwkThumbprint(publicJwk, "sha256"));
    expect(publicJwk.kid).toBe(kid);
  });
});

test("a key is of the algorithm that it was wrapped as", () => {
  const [eddsa, es256] = [storedKey("EdDSA").record, storedKey("ES256").record];
  for (const [one, other] of [
    [eddsa, es256],
    [es256, eddsa],
  ] as const) {
    expect(() => unwrapSigningKey({ ...one, publicJwk: other.publicJwk }, storedRing)).toThrow(/unknown stored format/);
    const wrapped = Buffer.from(one.wrapped);
    wrapped[0] = other.wrapped[0] ?? 0;
    const relabelled = {
      ...one,
      wrapped,
      publicJwk: { ...one.publicJwk, alg: other.publicJwk.alg } as PublicSigningJwk,
    };
    expect(() => unwrapSigningKey(relabelled, storedRing)).toThrow(/it was altered/);
  }
});

test("a key with the algorithm of a later release is an error that names the algorithm", () => {
  const publicJwk = { ...stored.publicJwk, alg: "ML-DSA-44" } as unknown as PublicSigningJwk;
  expect(() => unwrapSigningKey({ ...stored, publicJwk }, storedRing)).toThrow(
    /does not support its algorithm ML-DSA-44/,
  );
});

describe("a key for ES256", () => {
  test.each([
    ["0", "00".repeat(32)],
    ["the order", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"],
    ["the largest number of 32 bytes", "ff".repeat(32)],
  ])("is never %s", (_, outOfRange) => {
    const drawn = [hex(outOfRange), hex(vector.ES256.privateKey)];
    const scalar = ALGORITHMS.ES256.generate({ bytes: () => drawn.shift() ?? Buffer.alloc(0) });
    expect(Buffer.from(scalar).toString("hex")).toBe(vector.ES256.privateKey);
  });

  test("may be the smallest and the largest number of the field", () => {
    for (const scalar of ["01".padStart(64, "0"), "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550"]) {
      expect(Buffer.from(ALGORITHMS.ES256.generate({ bytes: () => hex(scalar) })).toString("hex")).toBe(scalar);
      expect(toPublicJwk(ALGORITHMS.ES256, toPrivateKey(ALGORITHMS.ES256, hex(scalar)))).toMatchObject({ kty: "EC" });
    }
  });

  test("has coordinates of 32 bytes, whatever they begin with", () => {
    const jwks = Array.from({ length: 1000 }, (_, index) => {
      const scalar = Buffer.alloc(32);
      scalar.writeUInt32BE(index + 1, 28);
      return toPublicJwk(ALGORITHMS.ES256, toPrivateKey(ALGORITHMS.ES256, scalar));
    });
    const coordinates = jwks.flatMap(({ x, y = "" }) => [x, y]);
    expect(coordinates).toHaveLength(2000);
    expect(new Set(coordinates.map((text) => text.length))).toEqual(new Set([43]));
    expect(coordinates.filter((text) => Buffer.from(text, "base64url")[0] === 0).length).toBeGreaterThan(0);
  });
});

describe("a wrong root secret", () => {
  const other = ringOf({ id: "ffffffffffffffff", secret: createSecretKey(randomBytes(32)) });
  const sameName = ringOf({ id: vector.wrapKey.id, secret: createSecretKey(randomBytes(32)) });

  test.each([
    ["with another id", other, /not wrapped with any configured root secret/],
    ["with the same id", sameName, /altered, or wrapped with another root secret/],
  ])("%s is an error that names the key without a secret", (_, ring, message) => {
    const unwrap = () => unwrapSigningKey(stored, ring);
    expect(unwrap).toThrow(message);
    expect(unwrap).toThrow(expect.objectContaining({ code: "INTERNAL", message: expect.stringContaining(stored.kid) }));
  });

  test("a retired wrapping key still unwraps", () => {
    const ring = ringOf(other.current, storedRing.current);
    expect(unwrapSigningKey(stored, ring).asymmetricKeyType).toBe("ed25519");
  });
});

test("rejects an exchanged kid or public key", () => {
  const [a, b] = [record(), record()];
  expect(() => unwrapSigningKey({ ...a, kid: b.kid }, RING)).toThrow(KeyholdError);
  expect(() => unwrapSigningKey({ ...a, publicJwk: b.publicJwk }, RING)).toThrow(/public key does not match/);
  expect(() => unwrapSigningKey({ ...a, wrapped: b.wrapped }, RING)).toThrow(KeyholdError);
});

describe("loadSigningKeys", () => {
  const retired = { createTime: new Date(NOW - HOUR), retireTime: new Date(NOW) };
  const current = record();
  const ending = record({ ...retired, tokensExpireTime: new Date(NOW + 1) });
  const ended = record({ ...retired, tokensExpireTime: new Date(NOW) });
  const unused = record(retired);
  const all = [ended, unused, ending, current];

  test("the newest active key signs", () => {
    const older = record({ createTime: new Date(NOW - 1) });
    const newer = record({ createTime: new Date(NOW + 1) });
    expect(loadSigningKeys([older, newer, current], RING, NOW).active?.kid).toBe(newer.kid);
    expect(loadSigningKeys([older, ending], RING, NOW).active?.kid).toBe(older.kid);
  });

  test("a retired key verifies until its last token has expired", () => {
    const kids = (now: number) => [...loadSigningKeys(all, RING, now).verification.keys()];
    expect(kids(NOW)).toEqual([current.kid, ending.kid]);
    expect(kids(NOW + 1)).toEqual([current.kid]);
  });

  test("verification has public keys only", () => {
    const types = [...loadSigningKeys(all, RING, NOW).verification.values()].map(({ publicKey }) => publicKey.type);
    expect(types).toEqual(["public", "public"]);
  });

  test("without records there is no active key", () => {
    expect(loadSigningKeys([], RING, NOW)).toEqual({
      active: undefined,
      verification: new Map(),
      records: [],
      unusable: [],
    });
    expect(loadSigningKeys([ending], RING, NOW).active).toBeUndefined();
  });

  test("a wrong root secret throws, unless it affects retired keys only", () => {
    const wrong = ringOf({ id: "ffffffffffffffff", secret: createSecretKey(randomBytes(32)) });
    expect(() => loadSigningKeys(all, wrong, NOW)).toThrow(KeyholdError);
    const rotated = record(newKey("EdDSA", wrong.current));
    const keys = loadSigningKeys([ending, rotated], wrong, NOW);
    expect(keys.records).toEqual([rotated]);
    expect(keys.unusable).toEqual([ending.kid]);
  });

  test("does not trust a public key inserted without the root secret", () => {
    const forger = newKey("EdDSA", { id: WRAP_KEY.id, secret: createSecretKey(randomBytes(32)) });
    const injected = record({ ...forger, ...retired, tokensExpireTime: new Date(NOW + HOUR) });
    const keys = loadSigningKeys([current, injected], RING, NOW);
    expect(keys.verification.has(injected.kid)).toBe(false);
    expect(keys.unusable).toEqual([injected.kid]);
  });

  const CHANGES = ALGORITHM_NAMES.flatMap((from) => ALGORITHM_NAMES.map((to) => ({ from, to })));

  test.each(CHANGES)(
    "after a rotation from $from to $to old tokens verify, and new ones have the new key",
    ({ from, to }) => {
      const current = record({}, from);
      const before = loadSigningKeys([current], RING, NOW);
      const { token } = mintJwt({ ...CONTENT, signingKey: activeKey(before) });
      const retiring = { ...current, retireTime: new Date(NOW), tokensExpireTime: new Date(CONTENT.expireTime) };
      const after = loadSigningKeys([retiring, record({ createTime: new Date(NOW + 1) }, to)], RING, NOW + 1);
      const verifyWith = (text: string, keys: typeof after) =>
        verifyJwt(text, { keys: (kid) => keys.verification.get(kid), issuer: ISSUER, now: NOW + 1 });
      const next = mintJwt({ ...CONTENT, signingKey: activeKey(after) }).token;
      expect([token, next].map((text) => decodeProtectedHeader(text).alg)).toEqual([from, to]);
      expect(verifyWith(token, after).ok).toBe(true);
      expect(verifyWith(next, after).ok).toBe(true);
      expect(verifyWith(next, before)).toMatchObject({ reason: "SIGNATURE_INVALID", message: "unknown signing key" });
    },
  );
});

test("the private key yields the public key of its record", () => {
  const one = record();
  const publicKey = createPublicKey(unwrapSigningKey(one, RING));
  expect(publicKey.export({ format: "jwk" }).x).toBe(one.publicJwk.x);
  expect(createPrivateKey(unwrapSigningKey(one, RING).export({ format: "pem", type: "pkcs8" })).type).toBe("private");
});
