import { type ErrorCode, fieldError, KeyholdError } from "../domain/errors.ts";
import { type ApiKey, type StoredKey, statusAt } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { type Invalid, verificationErrorOf } from "../domain/verdict.ts";
import { isVisible } from "../domain/visibility.ts";
import { assertCanManage, assertExpiresWithin } from "./authorization.ts";
import type { KeyName, KeyStore } from "./ports.ts";

/** Returns an error about a key, with its id as metadata. */
export function keyError(code: ErrorCode, keyId: string, message: string): KeyholdError {
  return new KeyholdError(code, message, { metadata: { key_id: keyId } });
}

export function keyNotFound({ keyId, kind }: KeyName): KeyholdError {
  return keyError("API_KEY_NOT_FOUND", keyId, `there is no ${kind === null ? "key" : `${kind} key`} ${keyId}`);
}

export function alreadyRevoked(keyId: string): KeyholdError {
  return keyError("API_KEY_ALREADY_REVOKED", keyId, `key ${keyId} is revoked already`);
}

/** Returns the error of a change whose condition did not hold, but holds now. */
export function changedMeanwhile({ key: { keyId } }: StoredKey): KeyholdError {
  return keyError("CONCURRENT_CHANGE", keyId, `key ${keyId} was changed at the same time; repeat the call`);
}

/** Returns the error for an operation on an invalid credential, with the name in the API of the reason. */
export function credentialInvalid({ reason, message }: Invalid): KeyholdError {
  return fieldError("CREDENTIAL_INVALID", "credential", message, {
    error_code: `VERIFICATION_ERROR_${verificationErrorOf(reason)}`,
  });
}

/** Returns the error if the state of a key does not allow an operation. */
type Check = (key: ApiKey, now: number) => KeyholdError | null;

/** Requires a key that is neither revoked nor expired. A disabled one may be changed. */
export const rejectUnlessActive: Check = (key, now) => {
  const { keyId } = key;
  const status = statusAt(key, now);
  if (status === "REVOKED") return keyError("API_KEY_REVOKED", keyId, `key ${keyId} is revoked`);
  if (status === "EXPIRED") return keyError("API_KEY_EXPIRED", keyId, `key ${keyId} has expired`);
  return null;
};

/** Requires an active key that the grantor may grant (`assertCanGrant`). */
export function rejectUnlessGrantable(grantor: Principal): Check {
  return (key, now) => {
    const rejection = rejectUnlessActive(key, now);
    if (rejection === null) assertExpiresWithin(key, grantor);
    return rejection;
  };
}

export const rejectIfRevoked: Check = (key) => (key.revokeTime === null ? null : alreadyRevoked(key.keyId));

/**
 * Returns the error of a change whose condition did not hold. Reads the key again; if the condition holds now, a concurrent change came in
 * between, and `otherwise` returns the error. `judgedBy` is the time by which the change judges whether a key has expired.
 */
export async function explainRejection(
  store: KeyStore,
  name: KeyName,
  principal: Principal,
  now: number,
  check: Check,
  otherwise: (stored: StoredKey) => KeyholdError = changedMeanwhile,
  judgedBy: "latestTime" | "earliestTime" = "latestTime",
): Promise<KeyholdError> {
  const stored = await store.get(name);
  if (stored === null || !isVisible(stored.key, principal.restrictions)) return keyNotFound(name);
  assertCanManage(stored.key, principal);
  // The key may have expired by another clock.
  const time = await store[judgedBy](new Date(now));
  return check(stored.key, time.getTime()) ?? otherwise(stored);
}
