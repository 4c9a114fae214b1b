import type { Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { memoize } from "../lib/memoize.ts";
import type { Caller } from "./caller.ts";
import type { Authenticate } from "./guard.ts";
import { unauthenticated } from "./refused-credential.ts";

/** Whether a bearer credential has the form of an issued secret. */
export type IsAdminToken = (credential: string) => boolean;

/**
 * The service guards itself with its own keys (contract §7): an admin token is an issued key with scopes over Keyhold. A token
 * derived from one is none: an admin token is revoked by name, not by waiting.
 */
export function adminTokens(
  isAdminToken: IsAdminToken,
  verify: (credential: string) => MaybePromise<Verdict>,
): Authenticate {
  return (credential) => (isAdminToken(credential) ? andThen(verify(credential), toCaller) : null);
}

/** Of a verdict that is given again the caller is the same. */
const toCaller = memoize((verdict: Verdict): Caller => {
  if (!verdict.valid) {
    const { reason: refusal, message, keyId } = verdict;
    throw unauthenticated(`the admin token is not valid: ${message}`, { reason: refusal, keyId });
  }
  return Object.freeze({ method: "admin-token", subject: verdict.key.keyId, scopes: verdict.scopes });
});
