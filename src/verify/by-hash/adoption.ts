import type { SecretDigest } from "../../domain/key.ts";
import type { Principal } from "../../domain/principal.ts";
import { type Identified, nativeDigests } from "../identified.ts";
import type { VerifiableRecord } from "../reader.ts";

/** The digests of the raw key, to be stored in place of that of its hash. */
export interface Adoption {
  readonly keyId: string;
  /** What is stored, and must not have changed. */
  readonly hashDigest: SecretDigest;
  /** Under the current server key. */
  readonly digest: SecretDigest;
  readonly otherDigests: readonly SecretDigest[];
}

/** `already`: the key was adopted, revoked or deleted before, or has expired. */
export type AdoptionOutcome = "adopted" | "already";

/** Stores an adoption if the key still has the hash. */
export type StoreAdoption = (adoption: Adoption, principal: Principal) => Promise<AdoptionOutcome>;

/** Returns the adoption of a key that a raw key was proven to be; null if it is adopted. */
export function adoptionOf(identified: Identified, { key, secrets: [secret] }: VerifiableRecord): Adoption | null {
  if (secret?.hash === undefined) return null;
  const [digest, ...otherDigests] = nativeDigests(identified);
  if (digest === undefined) return null;
  return { keyId: key.keyId, hashDigest: secret.digest, digest, otherDigests };
}
