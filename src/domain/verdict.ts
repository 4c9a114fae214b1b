import type { JsonObject } from "../lib/json.ts";
import type { VerifiableKey } from "./key.ts";

/** What a credential can be. */
export type CredentialType = "ISSUED_API_KEY" | "IMPORTED_API_KEY" | "JWT" | "MACAROON";

/** Why a credential is not valid. `SECRET_ROTATED` is apart from `KEY_REVOKED` because the key itself still lives. */
export type RejectionReason =
  | "INVALID_FORMAT"
  | "SIGNATURE_INVALID"
  | "NOT_FOUND"
  | "KEY_REVOKED"
  | "SECRET_ROTATED"
  | "EXPIRED"
  | "INTERNAL";

interface VerdictBase {
  /** By what was in memory after the lease: it may have changed since (`KEYHOLD_STALE_GRACE`). */
  readonly isStale?: true;
}

export interface Valid extends VerdictBase {
  readonly valid: true;
  readonly credentialType: CredentialType;
  readonly key: VerifiableKey;
  /** Version of the key's secret that the credential is, or was derived from. */
  readonly secretVersion: number;
  /** What the credential may do now: of a token, those of its scopes that its key still has. */
  readonly scopes: readonly string[];
  /** When the credential ends; null if it does not. */
  readonly expireTime: Date | null;
  /** Of a derived token alone. */
  readonly token: { readonly tokenId: string; readonly claims: JsonObject } | null;
}

export interface Invalid extends VerdictBase {
  readonly valid: false;
  readonly reason: RejectionReason;
  readonly message: string;
  /** The key that was recognised, where one was; not for the caller whose credential was refused. */
  readonly keyId: string | null;
}

/** The answer to "is this credential good?". A "no" is an answer, not an error. */
export type Verdict = Valid | Invalid;

export function invalid(refusal: RejectionReason, message: string, keyId: string | null = null): Invalid {
  return { valid: false, reason: refusal, message, keyId };
}

/** What a caller is told of a refusal (contract §5). */
export type VerificationError =
  | "VERIFICATION_ERROR_INVALID_FORMAT"
  | "VERIFICATION_ERROR_EXPIRED"
  | "VERIFICATION_ERROR_REVOKED"
  | "VERIFICATION_ERROR_NOT_FOUND"
  | "VERIFICATION_ERROR_SIGNATURE_INVALID"
  | "VERIFICATION_ERROR_INTERNAL";

const VERIFICATION_ERRORS: Readonly<Record<RejectionReason, VerificationError>> = {
  INVALID_FORMAT: "VERIFICATION_ERROR_INVALID_FORMAT",
  SIGNATURE_INVALID: "VERIFICATION_ERROR_SIGNATURE_INVALID",
  NOT_FOUND: "VERIFICATION_ERROR_NOT_FOUND",
  KEY_REVOKED: "VERIFICATION_ERROR_REVOKED",
  SECRET_ROTATED: "VERIFICATION_ERROR_REVOKED",
  EXPIRED: "VERIFICATION_ERROR_EXPIRED",
  INTERNAL: "VERIFICATION_ERROR_INTERNAL",
};

export function verificationErrorOf(refusal: RejectionReason): VerificationError {
  return VERIFICATION_ERRORS[refusal];
}
