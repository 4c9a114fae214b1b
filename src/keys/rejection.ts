import { type ErrorCode, fieldError, KeyholdError } from "../domain/errors.ts";
import { errorCodeOf, type Invalid } from "../domain/verdict.ts";
import type { KeyName } from "./ports.ts";

/** Returns an error about a key, with its id as metadata. */
export function keyError(code: ErrorCode, keyId: string, message: string): KeyholdError {
  return new KeyholdError(code, message, { metadata: { key_id: keyId } });
}

export function keyNotFound({ keyId, kind }: KeyName): KeyholdError {
  return keyError("API_KEY_NOT_FOUND", keyId, `there is no ${kind === null ? "key" : `${kind} key`} ${keyId}`);
}

export function alreadyRevoked(keyId: string): KeyholdError {
  return keyError("API_KEY_ALREADY_REVOKED", keyId, `key ${keyId} is already revoked`);
}

/** Returns the error for an operation on an invalid credential, with the name in the API of the reason. */
export function credentialInvalid({ reason, message }: Invalid): KeyholdError {
  return fieldError("CREDENTIAL_INVALID", "credential", message, errorCodeOf(reason));
}
