import { KeyholdError } from "../domain/errors.ts";
import type { Identity } from "../domain/principal.ts";
import { REJECTION_REASONS } from "../domain/verdict.ts";

/** Why a credential was rejected, for metrics and the log. */
export const REJECTION_CAUSES = [
  // No credential, not a bearer credential, or not an accepted kind.
  "MISSING",
  "MALFORMED",
  "UNKNOWN_KIND",
  // The verdict on an admin token.
  ...REJECTION_REASONS,
  // An access token of the issuer, which may also be EXPIRED.
  "INVALID_TOKEN",
  // The credential is valid but lacks the scope.
  "NOT_PERMITTED",
] as const;

export type RejectionCause = (typeof REJECTION_CAUSES)[number];

/** The owner of the rejected credential; not for the client. */
export interface Rejection {
  readonly reason: RejectionCause;
  /** The key that was identified. */
  readonly keyId?: string | null;
  /** The caller that lacks the scope. */
  readonly caller?: Identity;
}

const NO_TOKEN: readonly RejectionCause[] = ["MISSING", "MALFORMED"];

export class RejectedCredential extends KeyholdError {
  readonly rejection: Rejection;

  constructor(
    code: "CALLER_UNAUTHENTICATED" | "CALLER_NOT_PERMITTED",
    message: string,
    rejection: Rejection,
    scope?: string,
  ) {
    const isTokenInvalid = code === "CALLER_UNAUTHENTICATED" && !NO_TOKEN.includes(rejection.reason);
    super(code, message, { isTokenInvalid, ...(scope !== undefined && { metadata: { scope } }) });
    this.rejection = rejection;
  }
}

export function unauthenticated(message: string, rejection: Rejection): RejectedCredential {
  return new RejectedCredential("CALLER_UNAUTHENTICATED", message, rejection);
}
