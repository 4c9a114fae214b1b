import { KeyholdError } from "../domain/errors.ts";
import { type Identity, UNRESTRICTED } from "../domain/principal.ts";
import type { RejectionReason, Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { memoizable, memoizeByIdentity } from "../lib/memoize.ts";
import type { OidcVerifier } from "../token/oidc/verifier.ts";
import type { Presentation } from "../verify/context.ts";
import type { Authenticate } from "./guard.ts";
import { unauthenticated } from "./rejected-credential.ts";

/** Verifies the secret of an issued key. */
export type VerifyToken = (credential: string, presentation: Presentation) => MaybePromise<Verdict>;

/**
 * Authenticates callers by admin tokens: issued keys with scopes over Keyhold. A token derived from one is none: an admin token can be
 * revoked by its id, and need not expire first. `isAdminToken` returns whether a credential has the form of an issued secret.
 */
export function adminTokens(isAdminToken: (credential: string) => boolean, verify: VerifyToken): Authenticate {
  return (credential, presentation) =>
    isAdminToken(credential) ? andThen(verify(credential, presentation), toIdentity) : null;
}

/** The same message for both: otherwise a thief would learn that the token is valid at another address. The log has the reason. */
const UNEXPLAINED: readonly RejectionReason[] = ["IP_NOT_ALLOWED", "NOT_FOUND"];

/** Callers' verdicts are cached as objects. */
const toIdentity = memoizeByIdentity((verdict: Verdict): Identity => {
  if (!verdict.valid) {
    const { reason, message, keyId } = verdict;
    const why = UNEXPLAINED.includes(reason) ? "" : `: ${message}`;
    throw unauthenticated(`the admin token is not valid${why}`, { reason, keyId });
  }
  const { secretVersion, scopes, expireTime } = verdict;
  const { keyId, restrictedToActorIds: actorIds } = verdict.key;
  const restrictions = actorIds === null ? UNRESTRICTED : { actorIds };
  const identity = { method: "admin-token", subject: keyId, keyId, secretVersion, scopes, restrictions } as const;
  return memoizable(expireTime === null ? identity : { ...identity, expireTime });
});

/** Authenticates OIDC access tokens: every credential that no other method has claimed. */
export function oidcTokens(verifier: OidcVerifier): Authenticate {
  return async (credential) => {
    const verdict = await verifier.verify(credential);
    if (verdict.ok) {
      const { subject, scopes, actorIds, expireTime } = verdict;
      const restrictions = actorIds === null ? UNRESTRICTED : { actorIds };
      return { method: "oidc", subject, issuer: verifier.issuer, scopes, restrictions, expireTime };
    }
    if (verdict.reason !== "ISSUER_UNAVAILABLE") {
      const reason = verdict.reason === "EXPIRED" ? "EXPIRED" : "INVALID_TOKEN";
      throw unauthenticated(`the access token is not valid: ${verdict.message}`, { reason });
    }
    throw new KeyholdError("AUTHORITY_UNAVAILABLE", verdict.message, { cause: verdict.cause });
  };
}
