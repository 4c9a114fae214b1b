import type { JsonObject } from "../lib/json.ts";
import type { KeyholdError } from "./errors.ts";
import type { VerifiableKey } from "./key.ts";
import type { ActorLimits, Limit, LimitStatus } from "./rate-limit.ts";

export type CredentialType = "ISSUED_API_KEY" | "IMPORTED_API_KEY" | "JWT" | "MACAROON";

/** Why a credential is invalid. With `SECRET_ROTATED` the key itself is still active. */
export const REJECTION_REASONS = [
  "INVALID_FORMAT",
  "SIGNATURE_INVALID",
  "NOT_FOUND",
  "KEY_REVOKED",
  "SECRET_ROTATED",
  "EXPIRED",
  "DISABLED",
  "IP_NOT_ALLOWED",
  "AUDIENCE_MISMATCH",
  "INSUFFICIENT_SCOPE",
  "RATE_LIMITED",
  "QUOTA_EXCEEDED",
  "INTERNAL",
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** Returns whether a credential is rejected because a limit of its key or actor is exceeded. */
export function isLimitExceeded(reason: RejectionReason): boolean {
  return reason === "RATE_LIMITED" || reason === "QUOTA_EXCEEDED";
}

/** The content of a valid derived token. */
export interface ValidToken {
  readonly tokenId: string;
  readonly claims: JsonObject;
  /** The services that may accept it; undefined: any. */
  readonly audience: readonly string[] | undefined;
}

interface VerdictBase {
  /** The limits that were checked, once they are; undefined: the key has none, or none concerns the verification. */
  limits?: readonly LimitStatus[];
  /** Evaluated from the cache after the lease expired, so the key may have changed (`KEYHOLD_STALE_GRACE`). */
  readonly isStale?: true;
}

/** Forms of an answer that a protocol gives to a valid credential. */
export const ANSWER_FORMS = ["JSON", "PROTO", "FORWARD_AUTH", "EXT_AUTHZ"] as const;

export type AnswerForm = (typeof ANSWER_FORMS)[number];

/** The encoded answers of a cached verdict, which are the same as long as the verdict is. */
export interface EncodedAnswers {
  /** `responseSize` of the key with the scopes of the credential. */
  readonly size: number;
  /** Returns an answer that was kept; undefined if there is none. */
  answer(form: AnswerForm): Buffer | undefined;
  keep(form: AnswerForm, answer: Uint8Array): void;
}

export interface Valid extends VerdictBase {
  readonly valid: true;
  readonly keyId: string;
  readonly credentialType: CredentialType;
  readonly key: VerifiableKey;
  /** The rate limits and quotas of the key. */
  readonly keyLimits: readonly Limit[] | null;
  /** Undefined: the actor has none. */
  readonly actorLimits?: ActorLimits | undefined;
  /** The version of the key's secret that the credential is or was derived from. */
  readonly secretVersion: number;
  /** Effective scopes: for a token, its scopes that its key still has. */
  readonly scopes: readonly string[];
  /** Expiry of the credential; null if it does not expire. */
  readonly expireTime: Date | null;
  /** Set for derived tokens only. */
  readonly token: ValidToken | null;
  /** Undefined if the verdict is not cached, or depends on how the credential is presented. */
  readonly answers?: EncodedAnswers;
}

export interface Invalid extends VerdictBase {
  readonly valid: false;
  readonly reason: RejectionReason;
  readonly message: string;
  /** The key that the credential names, if known. Logged; never sent to the holder of a rejected credential. */
  readonly keyId: string | null;
  /**
   * For a credential that is authentic and of a key in force, but not accepted here: `DISABLED`, `IP_NOT_ALLOWED`, `AUDIENCE_MISMATCH`,
   * `INSUFFICIENT_SCOPE`, `RATE_LIMITED` (by a limit of the key or actor) and `QUOTA_EXCEEDED`.
   */
  readonly credential?: Valid;
  /** For `INSUFFICIENT_SCOPE`: the required scopes that the credential does not have. */
  readonly missingScopes?: readonly string[];
  /** For `RATE_LIMITED` by Keyhold's own limit on failed verifications: the error of a call with this credential alone. */
  readonly denial?: KeyholdError;
}

/** The result of a verification. An invalid credential is a value, not an error. */
export type Verdict = Valid | Invalid;

export function invalid(reason: RejectionReason, message: string, keyId: string | null = null): Invalid {
  return { valid: false, reason, message, keyId };
}

/** Why a credential is invalid, as its holder may know: the API does not distinguish a revoked key from a rotated secret. */
export type VerificationError = Exclude<RejectionReason, "KEY_REVOKED" | "SECRET_ROTATED"> | "REVOKED";

export function verificationErrorOf(reason: RejectionReason): VerificationError {
  return reason === "KEY_REVOKED" || reason === "SECRET_ROTATED" ? "REVOKED" : reason;
}

/** Returns the metadata of an error that has the reason of a verification, by its name in the API. */
export function errorCodeOf(reason: RejectionReason): { readonly error_code: string } {
  return { error_code: `VERIFICATION_ERROR_${verificationErrorOf(reason)}` };
}
