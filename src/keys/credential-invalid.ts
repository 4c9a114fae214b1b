import { KeyholdError } from "../domain/errors.ts";
import { type Invalid, verificationErrorOf } from "../domain/verdict.ts";

/** The credential that an operation works on is not valid; says why, as a verification would. */
export function credentialInvalid({ reason: refusal, message }: Invalid): KeyholdError {
  return new KeyholdError("CREDENTIAL_INVALID", `credential: ${message}`, {
    violations: [{ field: "credential", description: message }],
    metadata: { error_code: verificationErrorOf(refusal) },
  });
}
