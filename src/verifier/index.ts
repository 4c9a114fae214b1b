/** `keyhold/verifier`: judges the credentials of those who call you, tokens offline and all others by asking Keyhold. */
export { CredentialType } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
export { createKeyVerifier, type KeyVerifierOptions } from "./key-verifier.ts";
export { createTokenVerifier, type TokenVerifierOptions } from "./token-verifier.ts";
export type {
  RefusalReason,
  RejectedCredential as Refusal,
  Verdict,
  VerifiedCredential,
  VerifiedKey,
  VerifiedToken,
  Verifier,
} from "./verdict.ts";
