import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { isReserved } from "./reserved-scopes.ts";

/** The part of a key by which it is decided whether it outlives the credential of its giver. */
export type Given = Pick<ApiKey, "scopes" | "expireTime"> & Partial<Pick<ApiKey, "adoptBeforeTime">>;

/**
 * Throws `CALLER_NOT_PERMITTED` if the key, as it is after a change, grants a right over Keyhold for longer than the principal's own credential
 * is valid. Otherwise a credential that is to expire could be made to last. `postgres/keys/giver.ts` is the same in SQL.
 */
export function requireShorterLife(
  { scopes, expireTime, adoptBeforeTime = null }: Given,
  { expireTime: end }: Principal,
): void {
  // A key with a time by which it must be adopted may live longer after that.
  if (end === undefined || (expireTime !== null && adoptBeforeTime === null && expireTime <= end)) return;
  const scope = scopes.find(isReserved);
  if (scope === undefined) return;
  const time = end.toISOString();
  const message = `a key with the scope ${scope} must expire when the credential of the caller does, at ${time}, or earlier`;
  throw new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata: { scope, expire_time: time } });
}
