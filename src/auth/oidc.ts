import { KeyholdError } from "../domain/errors.ts";
import { UNRESTRICTED } from "../domain/principal.ts";
import type { OidcVerifier } from "../token/oidc/verifier.ts";
import type { Authenticate } from "./guard.ts";
import { unauthenticated } from "./refused-credential.ts";

/** Authenticates OIDC access tokens: every credential that no other method has claimed. */
export function oidcTokens(verifier: OidcVerifier): Authenticate {
  return async (credential) => {
    const verdict = await verifier.verify(credential);
    if (verdict.ok) {
      const { subject, scopes, expireTime } = verdict;
      return { method: "oidc", subject, scopes, restrictions: UNRESTRICTED, expireTime };
    }
    if (verdict.reason !== "ISSUER_UNAVAILABLE") {
      const reason = verdict.reason === "EXPIRED" ? "EXPIRED" : "INVALID_TOKEN";
      throw unauthenticated(`the access token is not valid: ${verdict.message}`, { reason });
    }
    throw new KeyholdError("AUTHORITY_UNAVAILABLE", "the issuer of access tokens cannot be reached", {
      cause: verdict.cause,
    });
  };
}
