import { KeyholdError } from "../errors.ts";
import { type Invalid, verificationErrorOf } from "../record/verdict.ts";

/** The credential that an operation works on is not valid; says why, as a verification would. */
export function credentialInvalid({ refusal, message }: Invalid): KeyholdError {
  return new KeyholdError("CREDENTIAL_INVALID", `credential: ${message}`, {
    violations: [{ field: "credential", description: message }],
    metadata: { error_code: verificationErrorOf(refusal) },
  });
}
