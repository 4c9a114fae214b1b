import type { KeyRing } from "../domain/server-keys.ts";
import { isWrappedByRetired, rewrapSecret, type WrapPurpose, type Wrapped } from "../domain/wrapped-secret.ts";
import type { Random } from "../lib/random.ts";
import { affixesOf, hmacKeyOf } from "./schemes.ts";
import type { RewrapStore } from "./store.ts";

export interface RewrapContext {
  readonly store: RewrapStore;
  /** The key ring "hash-scheme-wrap". */
  readonly ring: KeyRing;
  readonly random: Random;
}

/**
 * Rewraps every HMAC key, and every text around raw keys, that a retired root secret protects under the current one, which all servers must
 * know, and returns their number. What does not unwrap is left unchanged.
 */
export async function rewrapHashSecrets({ store, ring, random }: RewrapContext): Promise<number> {
  const { hmacKeys, schemes } = await store.read();
  const isOld = (stored: Wrapped) => isWrappedByRetired(stored, ring);
  const rewrap = (old: Wrapped, purpose: WrapPurpose) => rewrapSecret(old, purpose, ring, random);
  let count = 0;
  for (const key of hmacKeys.filter(isOld)) {
    await store.rewrapHmacKey(key.hmacKeyId, rewrap(key, hmacKeyOf(key)), key.wrapKeyId);
    count++;
  }
  for (const { schemeId, algorithm, slot, affixes } of schemes) {
    if (affixes === null || !isOld(affixes)) continue;
    await store.rewrapAffixes(schemeId, rewrap(affixes, affixesOf(algorithm, slot)), affixes.wrapKeyId);
    count++;
  }
  return count;
}
