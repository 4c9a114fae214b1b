import { mistakeIn } from "../credential/mistakes.ts";
import { earlier } from "../domain/expiry.ts";
import type { KeySecret } from "../domain/key.ts";
import type { VerifiableRecord } from "../domain/key-lookup.ts";
import { type Invalid, invalid, type Valid, type Verdict } from "../domain/verdict.ts";
import { memoizable, memoizeFirst } from "../lib/memoize.ts";
import { ACCESS_CHECKS, isFailure, STATE_CHECKS } from "./checks.ts";
import type { Presentation, VerifyContext } from "./context.ts";
import { belongsTo, type Evaluated, type Identified, type Loaded } from "./identified.ts";

/** Returns the verdict on a credential by its key. Fails closed: anything unknown is rejected. */
export function evaluate({ clock }: VerifyContext, text: string, presentation: Presentation, loaded: Loaded): Verdict {
  const { identified, stored } = loaded;
  if (stored === null || !isKeyOf(identified, stored)) return notFound(text);
  const now = clock.now();
  const last = identified.last === loaded ? identified.last : undefined;
  const secret = last?.secret ?? stored.secrets.find((secret) => belongsTo(identified, secret));
  for (const check of STATE_CHECKS) {
    const outcome = check.run(stored.key, secret, identified, now);
    if (isFailure(outcome)) return outcome;
  }
  // Without a secret the first check has failed.
  const credential = validBy(identified, stored, secret as KeySecret, last);
  for (const check of ACCESS_CHECKS) {
    const outcome = check.run(credential, presentation);
    if (isFailure(outcome)) return outcome;
  }
  return credential;
}

/** Returns the verdict on a credential in force, the same object while its inputs are the same. */
function validBy(
  identified: Identified,
  stored: VerifiableRecord,
  secret: KeySecret,
  last: Evaluated | undefined,
): Valid {
  if (last?.isRepeated === true) return last.verdict;
  // Memoizable from the second time on, such as for the encoded response.
  const isRepeated = last !== undefined;
  const verdict = isRepeated ? memoizable({ ...last.verdict }) : credentialOf(identified, stored, secret);
  identified.last = { identified, stored, secret, verdict, isRepeated };
  return verdict;
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
  { credentialType, token }: Identified,
  { key }: VerifiableRecord,
  secret: Pick<KeySecret, "version" | "expireTime">,
): Valid {
  return {
    valid: true,
    credentialType,
    key,
    secretVersion: secret.version,
    scopes: token === null ? key.scopes : token.scopes.filter((scope) => key.scopes.includes(scope)),
    expireTime: earlier(token === null ? null : new Date(token.expireTime), earlier(secret.expireTime, key.expireTime)),
    token: token === null ? null : { tokenId: token.tokenId, claims: token.claims, audience: token.audience },
  };
}
