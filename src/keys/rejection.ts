import { KeyholdError } from "../domain/errors.ts";
import { type ApiKey, type StoredKey, statusAt } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { requireReservedScopes } from "./reserved-scopes.ts";
import type { KeyName, KeyStore } from "./store.ts";

export function keyNotFound({ keyId, kind }: KeyName): KeyholdError {
  const what = kind === null ? "key" : `${kind} key`;
  return new KeyholdError("API_KEY_NOT_FOUND", `there is no ${what} ${keyId}`, { metadata: { key_id: keyId } });
}

/** Returns the error if the state of a key does not allow an operation. */
type Refuse = (key: ApiKey, now: number) => KeyholdError | null;

/** Requires a key that is neither revoked nor expired, for update and rotate. */
export const rejectUnlessActive: Refuse = (key, now) => {
  const status = statusAt(key, now);
  const metadata = { key_id: key.keyId };
  if (status === "REVOKED") return new KeyholdError("API_KEY_REVOKED", `key ${key.keyId} is revoked`, { metadata });
  if (status === "EXPIRED") return new KeyholdError("API_KEY_EXPIRED", `key ${key.keyId} has expired`, { metadata });
  return null;
};

export const rejectIfRevoked: Refuse = (key) =>
  key.revokeTime === null
    ? null
    : new KeyholdError("API_KEY_ALREADY_REVOKED", `key ${key.keyId} is revoked already`, {
        metadata: { key_id: key.keyId },
      });

/**
 * Returns the error of a change whose condition did not hold. Reads the key again; if the condition holds now, a concurrent change came in
 * between, and `otherwise` returns the error.
 */
export async function explainRejection(
  store: KeyStore,
  name: KeyName,
  principal: Principal,
  now: number,
  refuse: Refuse,
  otherwise: (stored: StoredKey) => KeyholdError,
): Promise<KeyholdError> {
  const stored = await store.get(name);
  if (stored === null) return keyNotFound(name);
  requireReservedScopes(stored.key.scopes, principal);
  return refuse(stored.key, now) ?? otherwise(stored);
}
