import { type InvalidReason, invalidArgument, type KeyholdError } from "../../domain/errors.ts";

/** Returns `INVALID_ARGUMENT` for a hash in the format of PHC, by the name of its field in the API. */
export function invalidPhc(description: string, reason?: InvalidReason): KeyholdError {
  return invalidArgument("raw_key_hash.phc", description, reason);
}
