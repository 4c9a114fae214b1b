import { classify } from "../credential/kinds.ts";
import { type Invalid, invalid, type Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import type { VerifyContext } from "./context.ts";
import { evaluate } from "./evaluate.ts";
import type { Identified } from "./identified.ts";
import { identify } from "./identify.ts";
import type { CacheMode, VerifiableRecord } from "./reader.ts";

type IdentifyOnce = (context: VerifyContext, credential: string) => MaybePromise<Identified | Invalid>;

/** Verifies one credential, synchronously if all data is cached. Throws or rejects only if no verdict can be reached, as without a database. */
export function verify(context: VerifyContext, credential: string, mode: CacheMode = "default"): MaybePromise<Verdict> {
  return evaluateCredential(context, credential, mode, identifyOnce);
}

/** Verifies credentials and returns their verdicts in order. A failure of one does not affect the others. */
export function verifyAll(
  context: VerifyContext,
  credentials: readonly string[],
  mode: CacheMode = "default",
): MaybePromise<Verdict[]> {
  const verdicts = credentials.map((credential) => evaluateCredential(context, credential, mode, identifyOrFault));
  return isAtHand(verdicts) ? verdicts : Promise.all(verdicts);
}

function evaluateCredential(
  context: VerifyContext,
  credential: string,
  mode: CacheMode,
  prove: IdentifyOnce,
): MaybePromise<Verdict> {
  const { identities } = context;
  const name = mode === "no-store" ? null : identities.nameOf(credential);
  const recalled = name === null ? undefined : identities.recall(name);
  if (recalled !== undefined) return evaluateCached(context, recalled, mode);
  const { generation } = identities;
  return andThen(prove(context, credential), (proven) => {
    if ("valid" in proven) return refuse(context, credential, proven);
    const found = (stored: VerifiableRecord | null) => {
      // Anyone can send an unknown raw key, so it is not worth the memory.
      if (stored !== null && name !== null) identities.remember(name, proven, generation);
      return conclude(context, proven, stored);
    };
    const stored = context.findKey(proven.lookup, mode);
    if (!(stored instanceof Promise)) return found(stored);
    return stored.then(found, (error: unknown) => evaluateStale(context, proven, mode, error));
  });
}

function evaluateCached(context: VerifyContext, recalled: Identified, mode: CacheMode): MaybePromise<Verdict> {
  const stored = context.findKey(recalled.lookup, mode);
  if (!(stored instanceof Promise)) return conclude(context, recalled, stored);
  return stored.then(
    (answer) => conclude(context, recalled, answer),
    (error: unknown) => evaluateStale(context, recalled, mode, error),
  );
}

/** Returns a stale verdict from the cache without a lease, where allowed; otherwise throws `error`. */
function evaluateStale(context: VerifyContext, recognized: Identified, mode: CacheMode, error: unknown): Verdict {
  const stale = mode === "default" ? context.findStale(recognized.lookup) : undefined;
  if (stale === undefined) throw error;
  context.onStale();
  return { ...conclude(context, recognized, stale), isStale: true };
}

function identifyOnce(context: VerifyContext, credential: string): MaybePromise<Identified | Invalid> {
  return identify(credential, context);
}

function identifyOrFault(context: VerifyContext, credential: string): MaybePromise<Identified | Invalid> {
  const fault = (error: unknown) => {
    context.onFault(error);
    return invalid("INTERNAL", "no verdict could be reached");
  };
  try {
    const proven = identify(credential, context);
    return proven instanceof Promise ? proven.catch(fault) : proven;
  } catch (error) {
    return fault(error);
  }
}

function conclude(context: VerifyContext, recognized: Identified, stored: VerifiableRecord | null): Verdict {
  const verdict = evaluate(recognized, stored, context.clock.now());
  context.onVerdict(recognized.credentialType, verdict);
  if (verdict.valid) context.onValid(verdict.key.keyId);
  return verdict;
}

function refuse(context: VerifyContext, credential: string, verdict: Invalid): Invalid {
  context.onVerdict(classify(credential, context.shapes).type, verdict);
  return verdict;
}

function isAtHand(verdicts: MaybePromise<Verdict>[]): verdicts is Verdict[] {
  return !verdicts.some((verdict) => verdict instanceof Promise);
}
