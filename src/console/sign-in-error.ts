/** Why a sign-in failed. The page has a text for each code (`console/texts/session.ts`). */
export type SignInErrorCode =
  /** The sign-in took too long, or was not begun in this browser. */
  | "expired"
  /** The response belongs to another sign-in. */
  | "mismatch"
  /** The person or the issuer denied it. */
  | "denied"
  /** The issuer rejected the request of this server, or this server the tokens of the issuer. */
  | "rejected"
  /** There is no access token that could be a credential. */
  | "no_access_token"
  /** The access token does not fit in a cookie. */
  | "token_too_long"
  /** The issuer is unreachable. */
  | "unavailable"
  /** The public address of the console is unknown. */
  | "unknown_address";

/** For the log; contains no text of the issuer and no token. */
interface Details {
  readonly reason: string;
  readonly issuer_error?: string;
}

export class SignInError extends Error {
  override readonly name = "SignInError";
  readonly code: SignInErrorCode;
  readonly details: Details;

  constructor(code: SignInErrorCode, details: Details, options?: ErrorOptions) {
    super(details.reason, options);
    this.code = code;
    this.details = details;
  }
}
