import { createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import type { KeyRing, ServerKey } from "../../../src/domain/server-keys.ts";
import type { AlgorithmName } from "../../../src/token/jwt/algorithms.ts";
import type { MintInput } from "../../../src/token/jwt/mint.ts";
import { loadSigningKeys, type SigningKeys } from "../../../src/token/jwt/signing-keys.ts";
import { generateSigningKey, type SigningKeyRecord } from "../../../src/token/signing-key.ts";

export const ISSUER = "https://keyhold.test";
/** 2026-01-01T00:00:00Z, in milliseconds. */
export const NOW = 1_767_225_600_000;
export const HOUR = 3_600_000;

export const random = { bytes: (size: number) => randomBytes(size) };

export function ringOf(...all: [ServerKey, ...ServerKey[]]): KeyRing {
  const [current] = all;
  return { current, all, find: (id) => all.find((key) => key.id === id) };
}

export const WRAP_KEY: ServerKey = { id: "0011223344556677", secret: createSecretKey(randomBytes(32)) };
export const RING = ringOf(WRAP_KEY);

/** A record of a new signing key, created at NOW. */
export function record(change: Partial<SigningKeyRecord> = {}, algorithm: AlgorithmName = "EdDSA"): SigningKeyRecord {
  const key = generateSigningKey(algorithm, WRAP_KEY, random);
  return { ...key, createTime: new Date(NOW), retireTime: null, tokensExpireTime: null, ...change };
}

export function activeKey(keys: SigningKeys): NonNullable<SigningKeys["active"]> {
  if (keys.active === undefined) throw new Error("no active key");
  return keys.active;
}

/** A key set with one active key, an older one of the other algorithm, and claims to mint with them. */
export const RECORD = record();
export const ES256_RECORD = record({ createTime: new Date(NOW - 1) }, "ES256");
export const KEYS = loadSigningKeys([RECORD, ES256_RECORD], RING, NOW);
export const ES256_KEY = activeKey(loadSigningKeys([ES256_RECORD], RING, NOW));
export const CONTENT = {
  issuer: ISSUER,
  actorId: "user_123",
  tokenId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  issueTime: NOW,
  expireTime: NOW + HOUR,
  scopes: ["read", "write"],
  keyId: "0198b2a4-0000-7c52-a1f0-5c9a3b7e2d10",
  secretVersion: 3,
  claims: {},
} satisfies Omit<MintInput, "signingKey">;

export function mintInput(change: Partial<MintInput> = {}): MintInput {
  return { signingKey: activeKey(KEYS), ...CONTENT, ...change };
}

export const verification = { keys: (kid: string) => KEYS.verification.get(kid), issuer: ISSUER, now: NOW };

/** Any text of UTF-16 code units. (fast-check's `unit: "binary"` takes most of a second to set up.) */
export function anyText(bounds: fc.ArrayConstraints = {}): fc.Arbitrary<string> {
  return fc.array(fc.nat(0xffff), bounds).map((units) => String.fromCharCode(...units));
}
