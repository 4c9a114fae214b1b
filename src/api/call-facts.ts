import { onceFrozen } from "../lib/once-frozen.ts";
import { type Verdict, verificationErrorOf } from "../record/verdict.ts";

type Facts = Readonly<Record<string, string>>;

/**
 * What the log is told of a verdict: the key of our own that the credential is of, if it was recognised, and why it was refused. Of a
 * verdict that is given again and again it is made once.
 */
export const factsOf = onceFrozen((verdict: Verdict): Facts => {
  const { keyId } = verdict.valid ? verdict.key : verdict;
  const result = verdict.valid ? "VALID" : verificationErrorOf(verdict.refusal);
  const facts = { ...(keyId !== null && { key_id: keyId }), verdict: result.replace("VERIFICATION_ERROR_", "") };
  return Object.isFrozen(verdict) ? Object.freeze(facts) : facts;
});

/**
 * The key that a call which succeeded was about, by its answer, or by its request where the answer names none. Only after success: what
 * stands in the place of a key_id before may be a secret.
 */
export function keyFacts(request: object, response: object): Facts {
  const keyId = keyIdIn(response) ?? keyIdIn(request);
  return keyId === undefined ? {} : { key_id: keyId };
}

function keyIdIn(message: object): string | undefined {
  const issued = "issuedApiKey" in message ? message.issuedApiKey : undefined;
  const holder = typeof issued === "object" && issued !== null ? issued : message;
  return "keyId" in holder && typeof holder.keyId === "string" && holder.keyId !== "" ? holder.keyId : undefined;
}
