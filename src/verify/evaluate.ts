import { mistakeIn } from "../credential/mistakes.ts";
import { earlier } from "../domain/expiry.ts";
import type { VerifiableRecord } from "../domain/key-lookup.ts";
import { limitsOf } from "../domain/rate-limit.ts";
import { type Invalid, invalid, type Valid, type Verdict } from "../domain/verdict.ts";
import { memoizable, memoizeFirst } from "../lib/memoize.ts";
import { controlsOf, isFailure, present, STATE_CHECKS } from "./checks.ts";
import type { Presentation } from "./context.ts";
import type { Credential, Identified, Loaded, SecretVersion } from "./identified.ts";

/** Returns the verdict on a credential by its key. */
export function evaluate(loaded: Loaded, presentation: Presentation, now: number): Verdict {
  const { identified, stored, secret } = loaded;
  for (const check of STATE_CHECKS) {
    const outcome = check.run(stored.key, secret, identified, now);
    if (isFailure(outcome)) return outcome;
  }
  // Without a secret the first check has failed.
  const credential = credentialOf(identified, stored, secret as SecretVersion);
  return present(credential, controlsOf(credential), presentation);
}

/** The verdict without a key. Memoizable, because anyone can ask for it: its log fields are formatted once. */
export const NOT_FOUND = memoizable(invalid("NOT_FOUND", "no such key"));

/** More than there are mistakes. */
const MAX_MISTAKES = 20;

const mistaken = memoizeFirst(MAX_MISTAKES, (mistake) =>
  memoizable(invalid("NOT_FOUND", `${NOT_FOUND.message}; the credential ${mistake}`)),
);

/** Returns `NOT_FOUND` with what is wrong with the form of the credential, if anything is. */
export function notFound(credential: string): Invalid {
  const mistake = mistakeIn(credential);
  return mistake === null ? NOT_FOUND : mistaken(mistake);
}

/** Returns whether a record that was found is of the kind that the credential names. */
export function isKeyOf({ kind }: Identified, { key }: VerifiableRecord): boolean {
  return kind === null || key.kind === kind;
}

/** Returns what a credential is worth if its key and this secret are in force. */
export function credentialOf(
  { credentialType, token }: Credential,
  { key, actorLimits }: VerifiableRecord,
  secret: SecretVersion,
): Valid {
  return {
    valid: true,
    keyId: key.keyId,
    credentialType,
    key,
    keyLimits: limitsOf(key),
    actorLimits,
    secretVersion: secret.version,
    scopes: token === null ? key.scopes : token.scopes.filter((scope) => key.scopes.includes(scope)),
    expireTime: earlier(token === null ? null : new Date(token.expireTime), earlier(secret.expireTime, key.expireTime)),
    token: token === null ? null : { tokenId: token.tokenId, claims: token.claims, audience: token.audience },
  };
}
