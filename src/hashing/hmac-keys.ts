import { fieldError, KeyholdError } from "../domain/errors.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import { wrapSecret } from "../domain/wrapped-secret.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import { hmacKeyOf, unwrapHmacKey } from "./schemes.ts";
import type { HmacKeyStore, ListedHmacKey } from "./store.ts";

export interface HmacKeysContext {
  readonly store: HmacKeyStore;
  /** The key ring "hash-scheme-wrap". */
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly random: Random;
}

/** Attempts to store a key while another call stores or deletes one. */
const ATTEMPTS = 3;
const MAX_HMAC_KEYS = 100;

/** Stores an HMAC key. No-op if it is stored under this id; throws `HMAC_KEY_ALREADY_EXISTS` if another one is. */
export async function createHmacKey(
  { store, ring, clock, random }: HmacKeysContext,
  principal: Principal,
  hmacKeyId: string,
  secret: Uint8Array,
): Promise<ListedHmacKey> {
  const wrapped = wrapSecret(secret, hmacKeyOf({ hmacKeyId }), ring.current, random);
  const key = { hmacKeyId, createTime: new Date(clock.now()), createdBy: callerName(principal) };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (await store.add({ ...key, ...wrapped }, principal)) return { ...key, notAdoptedCount: 0 };
    const existing = await store.find(hmacKeyId);
    if (existing === null) continue;
    if (!equalBytes(unwrapHmacKey(existing, ring), secret)) {
      const description = "is already the id of another HMAC key; choose another id, or delete that key first";
      throw fieldError("HMAC_KEY_ALREADY_EXISTS", "hmac_key_id", description);
    }
    const listed = (await store.list()).find((one) => one.hmacKeyId === hmacKeyId);
    if (listed !== undefined) return listed;
  }
  throw new KeyholdError(
    "TOO_MANY_HMAC_KEYS",
    `the maximum of ${MAX_HMAC_KEYS} HMAC keys is reached; delete an HMAC key that no imported key needs`,
  );
}

/** Lists all HMAC keys by id. */
export async function listHmacKeys({ store }: HmacKeysContext): Promise<ListedHmacKey[]> {
  return store.list();
}

/** Deletes an HMAC key. Throws `HMAC_KEY_IN_USE` while keys that were imported with it are not adopted. */
export async function deleteHmacKey(
  { store }: HmacKeysContext,
  principal: Principal,
  hmacKeyId: string,
): Promise<void> {
  const outcome = await store.delete(hmacKeyId, principal);
  if (outcome === "deleted") return;
  // An id that does not exist may be a secret in the wrong place.
  if (outcome === "absent") throw new KeyholdError("HMAC_KEY_NOT_FOUND", "no such HMAC key");
  const message = `some keys that were imported with the HMAC key ${hmacKeyId} are not adopted yet; verify or delete them first`;
  throw new KeyholdError("HMAC_KEY_IN_USE", message);
}
