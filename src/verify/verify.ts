import { classify } from "../credential/kinds.ts";
import { type Invalid, invalid, type Verdict } from "../domain/verdict.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { VerifyContext } from "./context.ts";
import { evaluate } from "./evaluate.ts";
import type { Identified } from "./identified.ts";
import { type Identify, identify } from "./identify.ts";
import { NOTHING, type Presentation } from "./presentation.ts";
import type { CacheMode, VerifiableRecord } from "./reader.ts";

/** One of several credentials to verify. */
export interface VerificationRequest extends Presentation {
  readonly credential: string;
}

/** Verifies one credential, synchronously if all data is cached. Throws or rejects only if no verdict can be reached, as without a database. */
export function verify(
  context: VerifyContext,
  credential: string,
  mode: CacheMode = "default",
  presentation: Presentation = NOTHING,
): MaybePromise<Verdict> {
  return verifyBy(identify, context, credential, presentation, mode);
}

/** Verifies credentials and returns their verdicts in order. A failure of one does not affect the others. */
export function verifyAll(
  context: VerifyContext,
  requests: readonly VerificationRequest[],
  mode: CacheMode = "default",
): MaybePromise<Verdict[]> {
  const verdicts = requests.map((request) => verifyBy(identifyOrFault, context, request.credential, request, mode));
  return hasNoPromise(verdicts) ? verdicts : Promise.all(verdicts);
}

function verifyBy(
  identify: Identify,
  context: VerifyContext,
  credential: string,
  presentation: Presentation,
  mode: CacheMode,
): MaybePromise<Verdict> {
  const identities = mode === "no-store" ? null : context.identities;
  const name = identities === null ? "" : identities.nameOf(credential);
  const cached = identities === null ? undefined : identities.get(name);
  if (cached !== undefined && isStillSigned(cached, context)) {
    return evaluateCached(context, cached, presentation, mode);
  }
  const generation = identities?.generation ?? 0;
  const proceed = (identified: Identified | Invalid): MaybePromise<Verdict> => {
    if ("valid" in identified) return reject(context, credential, identified);
    const found = (stored: VerifiableRecord | null) => {
      // Anyone can send an unknown raw key, so it is not worth the memory.
      if (stored !== null) identities?.set(name, identified, generation);
      return conclude(context, identified, stored, presentation);
    };
    const stored = context.findKey(identified.lookup, mode);
    if (!(stored instanceof Promise)) return found(stored);
    return stored.then(found, (error: unknown) => evaluateStale(context, identified, presentation, mode, error));
  };
  const identified = identify(credential, context);
  if (!(identified instanceof Promise)) return proceed(identified);
  return identified.then(proceed, (error: unknown) => {
    const last = identifyByLastKeys(credential, context);
    if (last === undefined) throw error;
    return evaluateStale(context, last, presentation, mode, error);
  });
}

/** Returns whether the signing key of a cached JWT is certainly not revoked. */
function isStillSigned({ credentialType }: Identified, context: VerifyContext): boolean {
  return credentialType !== "JWT" || context.hasCurrentPublicKeys();
}

/** Identifies a JWT by a key that may have been revoked, for a stale verdict. Returns undefined if it is not valid by any such key. */
function identifyByLastKeys(credential: string, context: VerifyContext): Identified | undefined {
  const identified = identify(credential, { ...context, publicKey: context.lastPublicKey });
  return identified instanceof Promise || "valid" in identified ? undefined : identified;
}

/** The usual path. */
function evaluateCached(
  context: VerifyContext,
  cached: Identified,
  presentation: Presentation,
  mode: CacheMode,
): MaybePromise<Verdict> {
  const stored = context.findKey(cached.lookup, mode);
  if (!(stored instanceof Promise)) return conclude(context, cached, stored, presentation);
  return stored.then(
    (loaded) => conclude(context, cached, loaded, presentation),
    (error: unknown) => evaluateStale(context, cached, presentation, mode, error),
  );
}

/** Returns a stale verdict from the cache without a lease, where allowed; otherwise throws `error`. */
function evaluateStale(
  context: VerifyContext,
  identified: Identified,
  presentation: Presentation,
  mode: CacheMode,
  error: unknown,
): Verdict {
  const stale = mode === "default" ? context.findStale(identified.lookup) : undefined;
  if (stale === undefined) throw error;
  context.onStale();
  return { ...conclude(context, identified, stale, presentation), isStale: true };
}

const identifyOrFault: Identify = (credential, context) => {
  const fault = (error: unknown) => {
    context.onFault(error);
    return invalid("INTERNAL", "no verdict could be reached");
  };
  try {
    const identified = identify(credential, context);
    if (!(identified instanceof Promise)) return identified;
    return identified.catch((error: unknown) => {
      // No JWT can be judged, as when the keys of all credentials cannot be read.
      if (!context.hasCurrentPublicKeys()) throw error;
      return fault(error);
    });
  } catch (error) {
    return fault(error);
  }
};

function conclude(
  context: VerifyContext,
  identified: Identified,
  stored: VerifiableRecord | null,
  presentation: Presentation,
): Verdict {
  const verdict = evaluate(identified, stored, presentation, context.clock.now());
  context.onVerdict(identified.credentialType, verdict);
  if (verdict.valid) context.onValid(verdict.key.keyId);
  return verdict;
}

function reject(context: VerifyContext, credential: string, verdict: Invalid): Invalid {
  context.onVerdict(classify(credential, context.shapes).type, verdict);
  return verdict;
}

function hasNoPromise(verdicts: MaybePromise<Verdict>[]): verdicts is Verdict[] {
  return !verdicts.some((verdict) => verdict instanceof Promise);
}
