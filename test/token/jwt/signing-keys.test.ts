import { createPrivateKey, createPublicKey, createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { calculateJwkThumbprint } from "jose";
import { describe, expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { mintJwt } from "../../../src/token/jwt/mint.ts";
import { loadSigningKeys } from "../../../src/token/jwt/signing-keys.ts";
import { verifyJwt } from "../../../src/token/jwt/verify.ts";
import { generateSigningKey, thumbprint, unwrapSigningKey } from "../../../src/token/signing-key.ts";
import { wrapSeed } from "../../../src/token/signing-key-wrap.ts";
import vector from "../../vectors/jwt-signing-key.json" with { type: "json" };
import { activeKey, CONTENT, HOUR, ISSUER, NOW, RING, random, record, ringOf, WRAP_KEY } from "./fixtures.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const stored = {
  kid: vector.publicJwk.kid,
  publicJwk: { ...vector.publicJwk, kty: "OKP", crv: "Ed25519", use: "sig", alg: "EdDSA" } as const,
  wrapped: hex(vector.wrapped),
  wrapKeyId: vector.wrapKey.id,
};
const storedRing = ringOf({ id: vector.wrapKey.id, secret: createSecretKey(vector.wrapKey.secret, "hex") });

describe("the stored form", () => {
  test("equals the vector of another implementation", () => {
    const wrapKey = storedRing.current;
    const wrapped = wrapSeed({
      seed: hex(vector.seed),
      kid: stored.kid,
      wrapKey,
      random: { bytes: () => hex(vector.nonce) },
    });
    expect(Buffer.from(wrapped).toString("hex")).toBe(vector.wrapped);
  });

  test("unwraps to the private key of RFC 8037 appendix A.1", () => {
    const jwk = unwrapSigningKey(stored, storedRing).export({ format: "jwk" });
    expect(Buffer.from(jwk.d ?? "", "base64url").toString("hex")).toBe(vector.seed);
  });

  test("never reuses a nonce", () => {
    const nonces = Array.from({ length: 50 }, () => Buffer.from(record().wrapped.subarray(1, 13)).toString("hex"));
    expect(new Set(nonces).size).toBe(50);
  });

  test("contains nothing of the seed", () => {
    const seeds: Uint8Array[] = [];
    const spied = { bytes: (size: number) => seeds[seeds.push(randomBytes(size)) - 1] ?? Buffer.alloc(0) };
    const { wrapped, publicJwk } = generateSigningKey({ wrapKey: WRAP_KEY, random: spied });
    expect(seeds.map((bytes) => bytes.length)).toEqual([32, 12]);
    expect(Buffer.from(wrapped).includes(seeds[0] ?? "none")).toBe(false);
    expect(Object.keys(publicJwk)).toEqual(["kty", "crv", "x", "kid", "use", "alg"]);
  });

  test("rejects any bit flip", () => {
    fc.assert(
      fc.property(fc.nat(stored.wrapped.length * 8 - 1), (bit) => {
        const wrapped = Buffer.from(stored.wrapped);
        wrapped[bit >> 3] = (wrapped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(() => unwrapSigningKey({ ...stored, wrapped }, storedRing)).toThrow(KeyholdError);
      }),
    );
  });

  test.each([0, 1, 13, 44, 49, 60, 62])("rejects %i bytes", (size) => {
    const wrapped = Buffer.concat([stored.wrapped, Buffer.alloc(1)]).subarray(0, size);
    expect(() => unwrapSigningKey({ ...stored, wrapped }, storedRing)).toThrow(/unknown stored format/);
  });
});

describe("a wrong root secret", () => {
  const other = ringOf({ id: "ffffffffffffffff", secret: createSecretKey(randomBytes(32)) });
  const sameName = ringOf({ id: vector.wrapKey.id, secret: createSecretKey(randomBytes(32)) });

  test.each([
    ["with another id", other, /no configured root secret/],
    ["with the same id", sameName, /altered, or wrapped under another root secret/],
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
  expect(() => unwrapSigningKey({ ...a, publicJwk: b.publicJwk }, RING)).toThrow(/public key is not that/);
  expect(() => unwrapSigningKey({ ...a, wrapped: b.wrapped }, RING)).toThrow(KeyholdError);
});

test("the kid is the JWK thumbprint", async () => {
  const { kid, publicJwk } = record();
  expect(thumbprint(vector.publicJwk.x)).toBe("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  expect(kid).toBe(await calculateJwkThumbprint(publicJwk, "sha256"));
  expect(publicJwk.kid).toBe(kid);
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
    const types = [...loadSigningKeys(all, RING, NOW).verification.values()].map((key) => key.type);
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
    const rotated = record({ ...generateSigningKey({ wrapKey: wrong.current, random }) });
    const keys = loadSigningKeys([ending, rotated], wrong, NOW);
    expect(keys.records).toEqual([rotated]);
    expect(keys.unusable).toEqual([ending.kid]);
  });

  test("does not trust a public key inserted without the root secret", () => {
    const forger = generateSigningKey({
      wrapKey: { id: WRAP_KEY.id, secret: createSecretKey(randomBytes(32)) },
      random,
    });
    const injected = record({ ...forger, ...retired, tokensExpireTime: new Date(NOW + HOUR) });
    const keys = loadSigningKeys([current, injected], RING, NOW);
    expect(keys.verification.has(injected.kid)).toBe(false);
    expect(keys.unusable).toEqual([injected.kid]);
  });

  test("after a rotation old tokens verify, and new ones are signed with the new key", () => {
    const before = loadSigningKeys([current], RING, NOW);
    const { token } = mintJwt({ ...CONTENT, signingKey: activeKey(before) });
    const retiring = { ...current, retireTime: new Date(NOW), tokensExpireTime: new Date(CONTENT.expireTime) };
    const after = loadSigningKeys([retiring, record({ createTime: new Date(NOW + 1) })], RING, NOW + 1);
    const verifyWith = (text: string, keys: typeof after) =>
      verifyJwt(text, { keys: (kid) => keys.verification.get(kid), issuer: ISSUER, now: NOW + 1 });
    const next = mintJwt({ ...CONTENT, signingKey: activeKey(after) }).token;
    expect(verifyWith(token, after).ok).toBe(true);
    expect(verifyWith(next, after).ok).toBe(true);
    expect(verifyWith(next, before)).toMatchObject({ reason: "SIGNATURE_INVALID", unknownKid: true });
  });
});

test("the private key yields the public key of its record", () => {
  const one = record();
  const publicKey = createPublicKey(unwrapSigningKey(one, RING));
  expect(publicKey.export({ format: "jwk" }).x).toBe(one.publicJwk.x);
  expect(createPrivateKey(unwrapSigningKey(one, RING).export({ format: "pem", type: "pkcs8" })).type).toBe("private");
});
