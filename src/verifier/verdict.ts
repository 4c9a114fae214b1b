import type { CredentialType, VerificationError } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { JsonObject } from "../lib/json.ts";
import { missingScopes } from "../lib/missing-scopes.ts";

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

/** Where a credential is presented. A verifier applies all of it, or says in its documentation what it cannot apply. */
export interface Presentation {
  /** Address of the client that sent the credential; empty if unknown. A key that is restricted to addresses is rejected without it. */
  readonly clientIp?: string | undefined;
  /** Scopes that the credential must have, all of them: at most 32. */
  readonly requiredScopes?: readonly string[] | undefined;
  /** The name of this service as an audience. Without it, a token that is made for an audience is rejected. */
  readonly audience?: string | undefined;
  /** What the request costs by limits of the key, by name; 1 by others. A verifier without a call to Keyhold charges nothing. */
  readonly charges?: readonly Charge[] | undefined;
}

export interface Charge {
  readonly name: string;
  /** 0: the limit is reported only. */
  readonly cost: number;
}

/** The state of a limit of the key after the verification. */
export interface CredentialLimit {
  readonly name: string;
  /** Verifications per window, or per period of the calendar. */
  readonly quota: number;
  /** Seconds; absent for a quota by the calendar. */
  readonly window?: number;
  /** Absent if Keyhold charges the verification later. */
  readonly remaining?: number;
  readonly resetTime?: Date;
  /** Whether the limit rejects the credential, or would if it were enforced. */
  readonly exceeded: boolean;
}

/** The properties of a derived JWT. */
export interface VerifiedToken extends VerifiedCredential {
  readonly tokenId: string;
  readonly issueTime: Date;
  readonly expireTime: Date;
  /** `tokenId` of the token that it was derived from, if any. */
  readonly parentId?: string;
  /** The services that may accept it. Absent: any. */
  readonly audience?: readonly string[];
  /** Custom claims. */
  readonly claims: JsonObject;
}

/** The properties of a credential that Keyhold verified. */
export interface VerifiedKey extends VerifiedCredential {
  readonly credentialType: CredentialType;
  /** Metadata of the key. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Custom claims of a derived token. Absent for other credentials. */
  readonly claims?: JsonObject;
  /** The limits of the key. Absent if it has none. */
  readonly limits?: readonly CredentialLimit[];
}

/** The API's `VERIFICATION_ERROR_…` (docs/api.md), or `UNAVAILABLE` if the credential could not be verified: deny access. */
export type RejectionReason = Exclude<keyof typeof VerificationError, "UNSPECIFIED" | "INTERNAL"> | "UNAVAILABLE";

/** Returns whether a limit of the key rejects the credential, which is valid otherwise. */
export function isLimitExceeded(reason: RejectionReason): boolean {
  return reason === "RATE_LIMITED" || reason === "QUOTA_EXCEEDED";
}

export interface RejectedCredential<T extends VerifiedCredential = VerifiedCredential> {
  readonly ok: false;
  readonly reason: RejectionReason;
  /** For people; contains nothing of the credential. */
  readonly message: string;
  /** The cause of `UNAVAILABLE`, for the log. */
  readonly cause?: unknown;
  /** With `INSUFFICIENT_SCOPE`: the required scopes that the credential does not have. */
  readonly missingScopes?: readonly string[];
  /** With `RATE_LIMITED` and `QUOTA_EXCEEDED`: the limits of the key, and the seconds after which it may be accepted again. */
  readonly limits?: readonly CredentialLimit[];
  readonly retryAfter?: number;
  /** With `INSUFFICIENT_SCOPE`, `RATE_LIMITED` and `QUOTA_EXCEEDED`: whose credential it is, for the log. Do not grant access. */
  readonly credential?: T;
}

/** The result of a verification. A rejection is a value: `verify` rejects only on a programming error. */
export type Verdict<T extends VerifiedCredential = VerifiedCredential> =
  | { readonly ok: true; readonly credential: T }
  | RejectedCredential<T>;

export interface Verifier<T extends VerifiedCredential = VerifiedCredential> {
  verify(credential: string, presentation?: Presentation): Promise<Verdict<T>>;
}

export function rejected(reason: RejectionReason, message: string, cause?: unknown): RejectedCredential<never> {
  return cause === undefined ? { ok: false, reason, message } : { ok: false, reason, message, cause };
}

/** Rejects a valid credential that lacks required scopes; otherwise returns it as valid. */
export function requireScopes<T extends VerifiedCredential>(
  credential: T,
  required: readonly string[] = [],
): Verdict<T> {
  const missing = missingScopes(required, credential.scopes);
  if (missing.length === 0) return { ok: true, credential };
  const rejection = rejected("INSUFFICIENT_SCOPE", "the credential lacks required scopes");
  return { ...rejection, missingScopes: missing, credential };
}
