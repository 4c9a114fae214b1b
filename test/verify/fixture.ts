import { randomBytes } from "node:crypto";
import { digestCurrent } from "../../src/credential/digest.ts";
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issueSecret } from "../../src/credential/issued-secret.ts";
import { type KeyKind, newId, type SecretDigest } from "../../src/domain/key.ts";
import type { VerifiableRecord } from "../../src/domain/key-lookup.ts";
import type { Principal } from "../../src/domain/principal.ts";
import type { RawKeyHash } from "../../src/domain/raw-key-hash.ts";
import { deriveKeyRing, type RootSecrets } from "../../src/domain/server-keys.ts";
import type { Valid, Verdict } from "../../src/domain/verdict.ts";
import type { Adoption } from "../../src/hashing/adopter.ts";
import { createFindByHash } from "../../src/hashing/find-by-hash.ts";
import { systemRandom } from "../../src/lib/random.ts";
import type { AlgorithmName } from "../../src/token/jwt/algorithms.ts";
import { looksLikeJwt } from "../../src/token/jwt/compact.ts";
import { mintJwt } from "../../src/token/jwt/mint.ts";
import { loadSigningKeys } from "../../src/token/jwt/signing-keys.ts";
import { mintMacaroon } from "../../src/token/macaroon/mint.ts";
import { looksLikeMacaroon } from "../../src/token/macaroon/text.ts";
import { generateSigningKey } from "../../src/token/signing-key.ts";
import { VerificationCache } from "../../src/verify/cache/cache.ts";
import type { VerifyContext } from "../../src/verify/context.ts";
import type { VerificationLease } from "../../src/verify/reader.ts";
import type { VerificationRequest } from "../../src/verify/verify.ts";
import { FAST, PREFIX_LENGTH, SLOW, TestHashes } from "../support/test-hashes.ts";
import { TestStore } from "./store.ts";

/** 2026-01-01T00:00:00Z, in milliseconds. */
/** The fields of a key without controls. */
export const NO_CONTROLS = {
  disableTime: null,
  allowedCidrs: null,
  restrictedToActorIds: null,
  rateLimits: null,
  quotas: null,
} as const;

/** Returns requests to verify these credentials, presented for nothing in particular. */
export function requestsOf(credentials: readonly string[]): VerificationRequest[] {
  return credentials.map((credential) => ({ credential, requiredScopes: [] }));
}

/** Returns the fields of a verdict, which a cached one decodes on use. */
export function fieldsOf(verdict: Verdict): Verdict {
  if (!verdict.valid) {
    const { credential } = verdict;
    return credential === undefined ? verdict : { ...verdict, credential: fieldsOf(credential) as Valid };
  }
  const { valid, keyId, credentialType, key, keyLimits, secretVersion, scopes, expireTime, token, isStale } = verdict;
  return {
    ...{ valid, keyId, credentialType, key, keyLimits, secretVersion, scopes, expireTime, token },
    ...(isStale && { isStale }),
  };
}

export const NOW = 1_767_225_600_000;
export const HOUR = 3_600_000;

const PREFIX = parseSecretPrefix("kh");
const ISSUER = "https://keyhold.test";

export const newRoots = (...retired: Uint8Array[]): RootSecrets => ({ current: randomBytes(32), retired });

type Change = Partial<VerifiableRecord["key"]> & { readonly secretVersion?: number };

/** Verification with an in-memory store and a controlled clock. */
export function newFixture({
  roots = newRoots(),
  maxEntries = 10_000,
  maxNegatives = 1000,
  cached = true,
  algorithm = "EdDSA" as AlgorithmName,
  byHash = false,
} = {}) {
  const store = new TestStore();
  let now = NOW;
  let isCoherent = true;
  /** Result of a renewal without a lease. */
  const lease: VerificationLease = {
    isCoherent: () => isCoherent,
    renewed: () => (mayRenew ? Promise.resolve() : Promise.reject(new Error("no lease"))),
  };
  let mayRenew = true;
  let isInStaleGrace = false;
  const clock = { now: () => now };
  const rings = {
    tag: deriveKeyRing(roots, "secret-tag"),
    digest: deriveKeyRing(roots, "secret-digest"),
    macaroonRoot: deriveKeyRing(roots, "macaroon-root"),
  };
  const wrapRing = deriveKeyRing(roots, "signing-key-wrap");
  const newKey = generateSigningKey(algorithm, wrapRing.current, systemRandom);
  const signing = loadSigningKeys(
    [{ ...newKey, createTime: new Date(NOW), retireTime: null, tokensExpireTime: null }],
    wrapRing,
    NOW,
  );
  const signingKey = signing.active;
  if (signingKey === undefined) throw new Error("no signing key");
  /** As the store has them. */
  let publicKeys = signing.verification;
  const cache = new VerificationCache(store.findKeys, {
    ...{ maxBytes: cached ? 16 * 2 ** 20 : 0, maxEntries, maxNegatives },
    ...lease,
    isInStaleGrace: () => isInStaleGrace,
  });
  const hashes = new TestHashes(rings.digest);
  const adoptions: { readonly adoption: Adoption; readonly caller: Principal }[] = [];
  const [used, faults]: [string[], unknown[]] = [[], []];
  const context: VerifyContext = {
    findKey: cache.findKey,
    findAll: cache.findAll,
    findStale: cache.findStale,
    allowsStale: true,
    credentials: cache.credentials,
    clock,
    shapes: { prefix: PREFIX, looksLikeJwt, looksLikeMacaroon },
    issuer: ISSUER,
    rings,
    findByHash: byHash ? createFindByHash({ ring: rings.digest, formats: hashes, slow: hashes }) : () => null,
    adopt: (adoption, caller) => adoptions.push({ adoption, caller }),
    publicKey: (kid) => {
      if (context.hasCurrentPublicKeys()) return publicKeys.get(kid);
      return lease.renewed().then(() => publicKeys.get(kid));
    },
    hasCurrentPublicKeys: () => isCoherent,
    lastPublicKey: (kid) => signing.verification.get(kid),
    charge: null,
    failures: null,
    onValid: (keyId) => used.push(keyId) > 0,
    onVerdict: () => {},
    onStale: () => {},
    onFault: (error) => faults.push(error),
  };

  const addHashed = (digest: SecretDigest | undefined, hash: RawKeyHash, change: Change) => {
    if (digest === undefined) throw new Error("the ring is empty");
    const keyId = newId(now, systemRandom);
    const key = {
      ...{ keyId, kind: "imported" as const, actorId: "actor_1", scopes: ["read", "write"], metadata: {} },
      ...{ expireTime: null, revokeTime: null, ...NO_CONTROLS },
      ...change,
    };
    store.put({ key, secrets: [{ version: 1, digest, expireTime: null, hash }] });
    return keyId;
  };
  const add = (kind: KeyKind, credential: string, keyId: string, { secretVersion = 1, ...change }: Change) => {
    const digest = digestCurrent(credential, rings.digest);
    const key = {
      ...{ keyId, kind, actorId: "actor_1", scopes: ["read", "write"], metadata: { team: "blue" } },
      ...{ expireTime: null, revokeTime: null, ...NO_CONTROLS },
      ...change,
    };
    store.put({ key, secrets: [{ version: secretVersion, digest, expireTime: null }] });
    return { keyId, credential };
  };
  const newSecret = (keyId: string) => issueSecret({ prefix: PREFIX, keyId, random: systemRandom, tagKeys: rings.tag });
  const content = (keyId: string, expireTime: number, audience?: readonly string[]) => ({
    ...{ issuer: ISSUER, actorId: "actor_1", tokenId: newId(now, systemRandom), issueTime: now, expireTime },
    ...{ scopes: ["read"], keyId, secretVersion: 1, claims: { team: "blue" }, audience },
  });

  return {
    ...{ store, cache, context, used, faults, rings, roots, hashes, adoptions, signingKey },
    at: (time: number) => {
      now = time;
    },
    /** Sets whether invalidations are guaranteed. */
    setCoherent: (coherent: boolean) => {
      isCoherent = coherent;
    },
    /** Whether cached entries may be used without a lease. */
    staleGrace: (is: boolean) => {
      isInStaleGrace = is;
    },
    /** The signing key is deleted from the store. */
    revokeSigningKey: () => {
      publicKeys = new Map();
    },
    /** Sets whether a renewal is granted. */
    renewable: (may: boolean) => {
      mayRenew = may;
    },
    issue: (change: Change = {}) => {
      const keyId = newId(now, systemRandom);
      return add("issued", newSecret(keyId), keyId, change);
    },
    importRaw: (rawKey: string, change: Change = {}) => add("imported", rawKey, newId(now, systemRandom), change),
    /** Stores a key by a fast hash. */
    importFast: (rawKey: string, change: Change = {}, scheme = FAST) => {
      const [digest] = hashes.fastDigests(rawKey, scheme);
      return addHashed(digest, { schemeId: scheme.schemeId, parameters: null }, change);
    },
    /** Stores a key by a slow hash and its prefix. */
    importSlow: (rawKey: string, change: Change = {}, length = PREFIX_LENGTH) => {
      const parameters = randomBytes(8).toString("hex");
      const [digest] = hashes.slowDigests(rawKey, parameters);
      const keyId = addHashed(digest, { schemeId: SLOW.schemeId, parameters }, change);
      const prefixes = hashes.prefixDigests(rawKey, length).map((one) => one.digest);
      store.prefixes.set(keyId, prefixes);
      cache.invalidate({ keyIds: [], digests: prefixes });
      return keyId;
    },
    /** Executes an adoption, as the database does. */
    adopt: ({ keyId, digest }: Adoption) => {
      const record = store.records.get(keyId);
      if (record === undefined) throw new Error("no such key");
      store.put({ ...record, secrets: [{ version: 1, digest, expireTime: null }] });
      store.prefixes.delete(keyId);
      cache.invalidate({ keyIds: [keyId], digests: [digest.digest] });
    },
    /** Rotates a key; the previous secret is valid until the given time, or not at all. */
    rotate: (keyId: string, graceEnd: number | null) => {
      const record = store.records.get(keyId);
      if (record === undefined) throw new Error("no such key");
      const credential = newSecret(keyId);
      const version = 1 + (record.secrets[0]?.version ?? 0);
      const before = graceEnd === null ? [] : record.secrets;
      const secrets = before.map((secret) => ({ ...secret, expireTime: new Date(graceEnd ?? 0) }));
      const digest = digestCurrent(credential, rings.digest);
      store.put({ ...record, secrets: [{ version, digest, expireTime: null }, ...secrets] });
      return credential;
    },
    jwt: (keyId: string, expireTime: number, audience?: readonly string[]) =>
      mintJwt({ ...content(keyId, expireTime, audience), signingKey }).token,
    macaroon: (keyId: string, expireTime: number, audience?: readonly string[]) =>
      mintMacaroon({ ...content(keyId, expireTime, audience), rootKey: rings.macaroonRoot.current }).token,
    changed: (keyId: string) => cache.invalidate({ keyIds: [keyId], digests: [] }),
  };
}
