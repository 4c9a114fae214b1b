import type { CredentialType } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { JsonObject } from "../lib/json.ts";

/** What every good credential says. */
export interface VerifiedCredential {
  readonly keyId: string;
  /** The owner of the key. */
  readonly actorId: string;
  /** What the credential may do. */
  readonly scopes: readonly string[];
  readonly issuer: string;
  /** Absent: it does not expire. */
  readonly expireTime?: Date;
}

/** What a derived JWT says of itself. */
export interface VerifiedToken extends VerifiedCredential {
  readonly tokenId: string;
  readonly issueTime: Date;
  readonly expireTime: Date;
  /** `tokenId` of the token that it was derived from, if it was. */
  readonly parentId?: string;
  /** The custom claims. */
  readonly claims: JsonObject;
}

/** What Keyhold says of a credential of any kind. */
export interface VerifiedKey extends VerifiedCredential {
  readonly credentialType: CredentialType;
  /** Of the key. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** As the `VERIFICATION_ERROR_…` of the API (docs/api.md). `UNAVAILABLE`: no verdict could be reached, so let nobody in. */
export type RefusalReason =
  | "INVALID_FORMAT"
  | "SIGNATURE_INVALID"
  | "EXPIRED"
  | "REVOKED"
  | "NOT_FOUND"
  | "UNAVAILABLE";

export interface RejectedCredential {
  readonly ok: false;
  readonly reason: RefusalReason;
  /** For a person; holds nothing of the credential. */
  readonly message: string;
  /** Of `UNAVAILABLE`, for the log. */
  readonly cause?: unknown;
}

/** A "no" is a value: `verify` rejects on a fault of the program alone. */
export type Verdict<T extends VerifiedCredential = VerifiedCredential> =
  | { readonly ok: true; readonly credential: T }
  | RejectedCredential;

export interface Verifier<T extends VerifiedCredential = VerifiedCredential> {
  verify(credential: string): Promise<Verdict<T>>;
}

export function refusal(reason: RefusalReason, message: string, cause?: unknown): RejectedCredential {
  return cause === undefined ? { ok: false, reason, message } : { ok: false, reason, message, cause };
}
