import { KeyholdError } from "../domain/errors.ts";
import { type Invalid, verificationErrorOf } from "../domain/verdict.ts";

/** Returns the error for an operation on an invalid credential, with the reason of the verification. */
export function credentialInvalid({ reason, message }: Invalid): KeyholdError {
  return new KeyholdError("CREDENTIAL_INVALID", `credential: ${message}`, {
    violations: [{ field: "credential", description: message }],
    metadata: { error_code: verificationErrorOf(reason) },
  });
}
