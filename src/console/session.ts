import type { SealedCookieOptions } from "./sealed-cookie.ts";

/**
 * The session of a person. The guard authenticates the credential in each call, so revoking it, or its expiry, ends the session.
 */
export interface Session {
  readonly credential: string;
  /** If the person has signed in by OpenID Connect. The ID token is for signing out at the issuer; absent if it does not fit. */
  readonly oidc?: { readonly idToken?: string };
}

/** After 12 hours, a person has to sign in again. */
export const SESSION_COOKIE: SealedCookieOptions = {
  name: "keyhold-session",
  sameSite: "Strict",
  lifetime: 12 * 3_600_000,
};
