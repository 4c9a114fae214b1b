import { type Identity, UNRESTRICTED } from "../domain/principal.ts";
import type { Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { memoize, sharedLike } from "../lib/memoize.ts";
import type { Authenticate } from "./guard.ts";
import { unauthenticated } from "./refused-credential.ts";

/** Whether a bearer credential has the form of an issued secret. */
export type IsAdminToken = (credential: string) => boolean;

/**
 * Authenticates callers by admin tokens: issued keys with scopes over Keyhold. A token derived from one is none: an admin token can be
 * revoked by its id, and need not expire first.
 */
export function adminTokens(
  isAdminToken: IsAdminToken,
  verify: (credential: string) => MaybePromise<Verdict>,
): Authenticate {
  return (credential) => (isAdminToken(credential) ? andThen(verify(credential), toIdentity) : null);
}

const toIdentity = memoize((verdict: Verdict): Identity => {
  if (!verdict.valid) {
    const { reason, message, keyId } = verdict;
    throw unauthenticated(`the admin token is not valid: ${message}`, { reason, keyId });
  }
  const { keyId } = verdict.key;
  return sharedLike(verdict, {
    ...{ method: "admin-token", subject: keyId, keyId, scopes: verdict.scopes, restrictions: UNRESTRICTED },
    ...(verdict.expireTime !== null && { expireTime: verdict.expireTime }),
  });
});
