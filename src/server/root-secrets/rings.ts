import { deriveKeyRing, parseRootSecret, type RootSecrets } from "../../domain/server-keys.ts";

export type Rings = ReturnType<typeof deriveRings>;

/** Derives the server keys from the root secrets, in their order. */
export function deriveRings(roots: RootSecrets) {
  return {
    tag: deriveKeyRing(roots, "secret-tag"),
    digest: deriveKeyRing(roots, "secret-digest"),
    fingerprint: deriveKeyRing(roots, "request-fingerprint"),
    pageToken: deriveKeyRing(roots, "page-token"),
    macaroonRoot: deriveKeyRing(roots, "macaroon-root"),
    signingKeyWrap: deriveKeyRing(roots, "signing-key-wrap"),
    hashSchemeWrap: deriveKeyRing(roots, "hash-scheme-wrap"),
    webhookSecretWrap: deriveKeyRing(roots, "webhook-secret-wrap"),
    consoleSession: deriveKeyRing(roots, "console-session"),
  };
}

/**
 * Returns the public fingerprint of a root secret, which the commands show and the database stores: that of its server key for digests,
 * which is stored with each digest.
 */
export function rootSecretId(rootSecret: string): string {
  return deriveKeyRing({ current: parseRootSecret(rootSecret), retired: [] }, "secret-digest").current.id;
}
