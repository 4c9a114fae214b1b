import { type ApiKey, type StoredKey, statusAt } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { isVisible } from "../domain/visibility.ts";
import { assertAllowedScopes, assertCanManage, assertExpiresWithin } from "./authorization.ts";
import type { KeyMutation, KeyName, KeysContext } from "./ports.ts";
import { keyError, keyNotFound } from "./rejection.ts";

/** Throws the error if the state of a key does not allow a change. `now` is in milliseconds. */
export type Check = (stored: StoredKey, now: number) => void;

/** Requires a key that is neither revoked nor expired. A disabled one may be changed. */
export const assertActive: Check = ({ key }, now) => {
  const { keyId } = key;
  const status = statusAt(key, now);
  if (status === "REVOKED") throw keyError("API_KEY_REVOKED", keyId, `key ${keyId} is revoked`);
  if (status === "EXPIRED") throw keyError("API_KEY_EXPIRED", keyId, `key ${keyId} has expired`);
};

/** Requires an active key that the grantor may grant (`assertCanGrant`). */
export function assertGrantable(grantor: Principal): Check {
  return (stored, now) => {
    assertActive(stored, now);
    assertExpiresWithin(stored.key, grantor);
    assertAllowedScopes(stored.key, grantor);
  };
}

/**
 * Changes a key, and returns it as it is then; a deleted key as it was. If the condition of the change did not hold, the key is read again
 * and the check throws the error, or a concurrent change came in between.
 *
 * @throws `API_KEY_NOT_FOUND`, `CALLER_NOT_PERMITTED`, `CONCURRENT_CHANGE`, or the error of the check
 */
export async function changeKey(
  { store, clock }: Pick<KeysContext, "store" | "clock">,
  principal: Principal,
  name: KeyName,
  change: KeyMutation,
  check: Check,
  now = clock.now(),
): Promise<ApiKey> {
  const changed = await store.change(name, change, principal, new Date(now));
  if (changed !== null) return changed;
  const stored = await store.get(name);
  if (stored === null || !isVisible(stored.key, principal.restrictions)) throw keyNotFound(name);
  assertCanManage(stored.key, principal);
  // The key may have expired by another clock.
  const time = await store.expiryTime(change.verb, new Date(now));
  check(stored, time.getTime());
  throw keyError("CONCURRENT_CHANGE", name.keyId, `key ${name.keyId} was changed concurrently; retry`);
}
