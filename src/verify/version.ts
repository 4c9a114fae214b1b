import type { Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import type { VerifyContext } from "./context.ts";
import { evaluate, NOT_FOUND } from "./evaluate.ts";
import { identifiedSecret } from "./identified.ts";

/**
 * Verifies a version of the secret of an issued key, of which the caller knows that it was presented. Restrictions to addresses do not
 * apply: nobody presents it now. Rejects only if no verdict can be reached.
 */
export function verifyVersion(
  { findKey, clock }: Pick<VerifyContext, "findKey" | "clock">,
  keyId: string,
  version: number,
): MaybePromise<Verdict> {
  const identified = identifiedSecret(keyId, []);
  return andThen(findKey(identified.lookup, "default"), (stored) => {
    if (stored === null) return NOT_FOUND;
    const secret = stored.secrets.find((one) => one.version === version);
    const anywhere = { ...stored, key: { ...stored.key, allowedCidrs: null } };
    return evaluate({ identified, stored: anywhere, secret, adoption: null }, { requiredScopes: [] }, clock.now());
  });
}
