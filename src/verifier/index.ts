/** `@keyhold/client/verifier`: verifies callers' credentials in a resource server: tokens offline, all others by calling Keyhold. */
export { CredentialType } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
export { createKeyVerifier, type KeyVerifierOptions } from "./key-verifier.ts";
export { createTokenVerifier, type TokenVerifierOptions } from "./token-verifier.ts";
export type {
  Presentation,
  RejectedCredential as Refusal,
  RejectionReason as RefusalReason,
  Verdict,
  VerifiedCredential,
  VerifiedKey,
  VerifiedToken,
  Verifier,
} from "./verdict.ts";
