import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issueSecret } from "../../src/credential/issued-secret.ts";
import { deriveKeyRing, type KeyRing, type RootSecrets } from "../../src/domain/server-keys.ts";
import type { Random } from "../../src/lib/random.ts";
import vectors from "../vectors/credential.json" with { type: "json" };

export const ROOTS: RootSecrets = { current: Buffer.from(vectors.root, "hex"), retired: [] };
export const OTHER_ROOTS: RootSecrets = { current: Buffer.alloc(32, 7), retired: [] };
export const TAG_KEYS: KeyRing = deriveKeyRing(ROOTS, "secret-tag");
export const DIGEST_KEYS: KeyRing = deriveKeyRing(ROOTS, "secret-digest");

/** A random source that returns exactly these bytes, and rejects a request for another number. */
export function fixedRandom(bytes: Uint8Array): Random {
  return {
    bytes(size) {
      if (size !== bytes.length) throw new Error(`asked for ${size} bytes`);
      return bytes;
    },
  };
}

export interface SampleInput {
  readonly prefix: string;
  readonly keyId: string;
  readonly random: Uint8Array;
  readonly tagKeys?: KeyRing;
}

export function issueSample({ prefix, keyId, random, tagKeys = TAG_KEYS }: SampleInput): string {
  return issueSecret({ prefix: parseSecretPrefix(prefix), keyId, random: fixedRandom(random), tagKeys });
}
