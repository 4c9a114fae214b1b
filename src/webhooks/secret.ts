import type { KeyRing } from "../domain/server-keys.ts";
import {
  isWrappedByRetired,
  rewrapSecret,
  unwrapSecret,
  type WrapPurpose,
  type Wrapped,
  wrapSecret,
} from "../domain/wrapped-secret.ts";
import type { Random } from "../lib/random.ts";
import type { EndpointSecrets } from "./endpoint.ts";
import type { SecretStore } from "./store.ts";

/** Bytes (Standard Webhooks: between 24 and 64). */
const SIZE = 32;

export interface SecretContext {
  /** The key ring "webhook-secret-wrap". */
  readonly ring: KeyRing;
  readonly random: Random;
}

const purposeOf = (endpointId: string): WrapPurpose => ({
  ...{ purpose: "webhook secret", name: endpointId, version: 1, size: SIZE },
  remedy: "Rotate the secret of the endpoint",
});

/** Returns a new secret as receivers need it, and as it is stored. */
export function newWebhookSecret({ ring, random }: SecretContext, endpointId: string) {
  const secret = random.bytes(SIZE);
  const text = `whsec_${Buffer.from(secret).toString("base64")}`;
  return { text, wrapped: wrapSecret(secret, purposeOf(endpointId), ring.current, random) };
}

/** Returns the bytes of the secrets that sign, the current one first. Throws `INTERNAL` if one cannot be unwrapped. */
export function signingSecrets({ endpointId, secret, oldSecret }: EndpointSecrets, ring: KeyRing): Uint8Array[] {
  const all = oldSecret === null ? [secret] : [secret, oldSecret];
  return all.map((one) => unwrapSecret(one, purposeOf(endpointId), ring));
}

/**
 * Rewraps every secret that a retired root secret protects under the current one, which all servers must know, and returns the number of
 * endpoints. What does not unwrap is left unchanged.
 */
export async function rewrapWebhookSecrets(store: SecretStore, { ring, random }: SecretContext): Promise<number> {
  let count = 0;
  for (const stored of await store.secrets()) {
    const purpose = purposeOf(stored.endpointId);
    const rewrap = (old: Wrapped) => (isWrappedByRetired(old, ring) ? rewrapSecret(old, purpose, ring, random) : old);
    const [secret, oldSecret] = [rewrap(stored.secret), stored.oldSecret && rewrap(stored.oldSecret)];
    if (secret === stored.secret && oldSecret === stored.oldSecret) continue;
    await store.rewrap({ endpointId: stored.endpointId, secret, oldSecret }, stored.secret);
    count++;
  }
  return count;
}
