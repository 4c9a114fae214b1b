import type { CredentialType } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { JsonObject } from "../lib/json.ts";

/** The properties of every valid credential. */
export interface VerifiedCredential {
  readonly keyId: string;
  /** The owner of the key. */
  readonly actorId: string;
  /** Scopes that the credential grants. */
  readonly scopes: readonly string[];
  readonly issuer: string;
  /** Absent if it does not expire. */
  readonly expireTime?: Date;
}

/** The properties of a derived JWT. */
export interface VerifiedToken extends VerifiedCredential {
  readonly tokenId: string;
  readonly issueTime: Date;
  readonly expireTime: Date;
  /** `tokenId` of the token that it was derived from, if any. */
  readonly parentId?: string;
  /** Custom claims. */
  readonly claims: JsonObject;
}

/** The properties of a credential that Keyhold verified. */
export interface VerifiedKey extends VerifiedCredential {
  readonly credentialType: CredentialType;
  /** Metadata of the key. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The API's `VERIFICATION_ERROR_…` (docs/api.md), or `UNAVAILABLE` if the credential could not be verified: deny access. */
export type RejectionReason =
  | "INVALID_FORMAT"
  | "SIGNATURE_INVALID"
  | "EXPIRED"
  | "REVOKED"
  | "NOT_FOUND"
  | "UNAVAILABLE";

export interface RejectedCredential {
  readonly ok: false;
  readonly reason: RejectionReason;
  /** For people; contains nothing of the credential. */
  readonly message: string;
  /** The cause of `UNAVAILABLE`, for the log. */
  readonly cause?: unknown;
}

/** The result of a verification. A rejection is a value: `verify` rejects only on a programming error. */
export type Verdict<T extends VerifiedCredential = VerifiedCredential> =
  | { readonly ok: true; readonly credential: T }
  | RejectedCredential;

export interface Verifier<T extends VerifiedCredential = VerifiedCredential> {
  verify(credential: string): Promise<Verdict<T>>;
}

export function rejected(reason: RejectionReason, message: string, cause?: unknown): RejectedCredential {
  return cause === undefined ? { ok: false, reason, message } : { ok: false, reason, message, cause };
}
