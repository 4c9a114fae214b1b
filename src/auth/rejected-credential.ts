import { KeyholdError } from "../domain/errors.ts";
import type { Identity } from "../domain/principal.ts";
import type { RejectionReason } from "../domain/verdict.ts";

/** Why a credential was rejected, for metrics and the log. */
export const REJECTION_CAUSES = [
  // No credential, not a bearer credential, or not an accepted kind.
  "MISSING",
  "MALFORMED",
  "UNKNOWN_KIND",
  // The verdict on an admin token.
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
  "INTERNAL",
  // An access token of the issuer, which may also be EXPIRED.
  "INVALID_TOKEN",
  // The credential is valid but lacks the scope.
  "NOT_PERMITTED",
] as const satisfies readonly (RejectionReason | string)[];

export type RejectionCause = (typeof REJECTION_CAUSES)[number];

/** The owner of the rejected credential; not for the client. */
export interface Rejection {
  readonly reason: RejectionCause;
  /** The key that was identified. */
  readonly keyId?: string | null;
  /** The caller that lacks the scope. */
  readonly caller?: Identity;
}

/** The error for a rejected credential. */
export class RejectedCredential extends KeyholdError {
  readonly rejection: Rejection;

  constructor(
    code: "CALLER_UNAUTHENTICATED" | "CALLER_NOT_PERMITTED",
    message: string,
    rejection: Rejection,
    scope?: string,
  ) {
    super(code, message, scope === undefined ? {} : { metadata: { scope } });
    this.rejection = rejection;
  }
}

export function unauthenticated(message: string, rejection: Rejection): RejectedCredential {
  return new RejectedCredential("CALLER_UNAUTHENTICATED", message, rejection);
}
