import { classify } from "../credential/kinds.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { type Invalid, invalid, type Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { adoptionOf } from "./by-hash/adoption.ts";
import { type Found, findByHash, isUnproven, type OnUnproven } from "./by-hash/find.ts";
import { withLastLookups } from "./by-hash/recognition.ts";
import type { VerifyContext } from "./context.ts";
import { evaluate, NOT_FOUND, notFound } from "./evaluate.ts";
import type { Identified, IdentityCache } from "./identified.ts";
import { type Identify, identify } from "./identify.ts";
import { NOTHING, type Presentation, sourceOf } from "./presentation.ts";
import type { CacheMode, FindCandidates, KeyLookup, VerifiableRecord } from "./reader.ts";

/** One of several credentials to verify. */
export interface VerificationRequest extends Presentation {
  readonly credential: string;
}

/**
 * Verifies one credential, synchronously if all data is cached. Throws or rejects only if no verdict can be reached, as without a database.
 * A key of which only a hash is known is adopted in the name of `caller`, if there is one.
 */
export function verify(
  context: VerifyContext,
  credential: string,
  mode: CacheMode = "default",
  presentation: Presentation = NOTHING,
  caller?: Principal,
): MaybePromise<Verdict> {
  return verifyBy(ONE, context, credential, presentation, mode, caller);
}

/** Verifies credentials and returns their verdicts in order. A failure of one does not affect the others. */
export function verifyAll(
  context: VerifyContext,
  requests: readonly VerificationRequest[],
  mode: CacheMode = "default",
  caller?: Principal,
): MaybePromise<Verdict[]> {
  const verdicts = requests.map((request) => verifyBy(EACH, context, request.credential, request, mode, caller));
  return hasNoPromise(verdicts) ? verdicts : Promise.all(verdicts);
}

/** What becomes of a credential that cannot be identified, or whose hash cannot be computed. */
interface Policy {
  readonly identify: Identify;
  readonly onUnproven: OnUnproven;
}

/** A verification that the cache alone does not answer. */
interface Attempt {
  readonly policy: Policy;
  readonly context: VerifyContext;
  readonly credential: string;
  readonly presentation: Presentation;
  readonly mode: CacheMode;
  readonly caller: Principal | undefined;
}

function verifyBy(
  policy: Policy,
  context: VerifyContext,
  credential: string,
  presentation: Presentation,
  mode: CacheMode,
  caller: Principal | undefined,
): MaybePromise<Verdict> {
  const identities = mode === "no-store" ? null : context.identities;
  const name = identities === null ? "" : identities.nameOf(credential);
  const cached = identities === null ? undefined : identities.get(name);
  if (cached === undefined || !isStillSigned(cached, context)) {
    return verifyUncached({ policy, context, credential, presentation, mode, caller }, identities, name);
  }
  // The usual path.
  const stored = context.findKey(cached.lookup, mode);
  if (!(stored instanceof Promise) && !isUnproven(cached, stored)) {
    return conclude(context, credential, cached, stored, presentation, caller);
  }
  return verifyIdentified(
    { policy, context, credential, presentation, mode, caller },
    cached,
    stored,
    identities,
    name,
  );
}

function verifyUncached(attempt: Attempt, identities: IdentityCache | null, name: string): MaybePromise<Verdict> {
  const { policy, context, credential, mode } = attempt;
  const generation = identities?.generation ?? 0;
  const proceed = (identified: Identified | Invalid): MaybePromise<Verdict> => {
    if ("valid" in identified) return reject(context, credential, identified);
    const stored = context.findKey(identified.lookup, mode);
    return verifyIdentified(attempt, identified, stored, identities, name, generation);
  };
  const identified = policy.identify(credential, context);
  if (!(identified instanceof Promise)) return proceed(identified);
  return identified.then(proceed, (error: unknown) => {
    const last = identifyByLastKeys(credential, context);
    if (last === undefined) throw error;
    return evaluateStale(attempt, last, error);
  });
}

/** Evaluates a credential by the key that is found, or that a hash of it shows, and caches which it is. */
function verifyIdentified(
  attempt: Attempt,
  identified: Identified,
  stored: MaybePromise<VerifiableRecord | null>,
  identities: IdentityCache | null,
  name: string,
  generation = identities?.generation ?? 0,
): MaybePromise<Verdict> {
  const { context, credential, presentation, caller } = attempt;
  const found = (result: Found | Invalid): Verdict => {
    if ("valid" in result) return reject(context, credential, result);
    // Anyone can send an unknown raw key, so it is not worth the memory.
    if (result.stored !== null) identities?.set(name, result.identified, generation);
    return conclude(context, credential, result.identified, result.stored, presentation, caller);
  };
  const result = andThen(stored, (one) => proveKey(attempt, identified, one));
  if (!(result instanceof Promise)) return found(result);
  return result.then(found, (error: unknown) => evaluateStale(attempt, identified, error));
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

/** Returns a stale verdict from the cache without a lease, where allowed; otherwise throws `error`. */
function evaluateStale(attempt: Attempt, identified: Identified, error: unknown): MaybePromise<Verdict> {
  const { context, credential, presentation, mode } = attempt;
  const findStale = (lookup: KeyLookup): VerifiableRecord | null => {
    const stale = mode === "default" ? context.findStale(lookup) : undefined;
    if (stale === undefined) throw error;
    return stale;
  };
  const findCandidates: FindCandidates = (lookup) => {
    const stale = findStale(lookup);
    return stale === null ? [] : [stale];
  };
  const hashes = context.hashes && withLastLookups(context.hashes);
  const inCache = { ...attempt, context: { ...context, findCandidates, hashes } };
  const found = proveKey(inCache, identified, findStale(identified.lookup));
  return andThen(found, (result) => {
    if ("valid" in result) return reject(context, credential, result);
    context.onStale();
    return {
      ...conclude(context, credential, result.identified, result.stored, presentation, undefined),
      isStale: true,
    };
  });
}

function proveKey(
  { policy, context, credential, mode, presentation, caller }: Attempt,
  identified: Identified,
  stored: VerifiableRecord | null,
): MaybePromise<Found | Invalid> {
  if (!isUnproven(identified, stored)) return { identified, stored };
  return findByHash(context, credential, identified, mode, policy.onUnproven, sourceOf(presentation, caller));
}

const NO_VERDICT = invalid("INTERNAL", "no verdict could be reached");

const identifyOrFault: Identify = (credential, context) => {
  const fault = (error: unknown) => {
    context.onFault(error);
    return NO_VERDICT;
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

const ONE: Policy = {
  identify,
  onUnproven: (error) => {
    throw error;
  },
};

const EACH: Policy = {
  identify: identifyOrFault,
  onUnproven: (error, context) => {
    // A flood of wrong raw keys must not flood the log.
    if (!(error instanceof KeyholdError && error.code === "OVERLOADED")) context.onFault(error);
    return NO_VERDICT;
  },
};

function conclude(
  context: VerifyContext,
  credential: string,
  identified: Identified,
  stored: VerifiableRecord | null,
  presentation: Presentation,
  caller: Principal | undefined,
): Verdict {
  const evaluated = evaluate(identified, stored, presentation, context.clock.now());
  const verdict = evaluated === NOT_FOUND ? notFound(credential) : evaluated;
  context.onVerdict(identified.credentialType, verdict);
  if (verdict.valid) {
    context.onValid(verdict.key.keyId);
    if (identified.hashDigest !== undefined) adopt(context, identified, stored, caller);
  }
  return verdict;
}

function adopt(
  context: VerifyContext,
  identified: Identified,
  stored: VerifiableRecord | null,
  caller: Principal | undefined,
): void {
  const adoption = stored === null || caller === undefined ? null : adoptionOf(identified, stored);
  if (adoption !== null && caller !== undefined) context.adopt(adoption, caller);
}

function reject(context: VerifyContext, credential: string, verdict: Invalid): Invalid {
  context.onVerdict(classify(credential, context.shapes).type, verdict);
  return verdict;
}

function hasNoPromise(verdicts: MaybePromise<Verdict>[]): verdicts is Verdict[] {
  return !verdicts.some((verdict) => verdict instanceof Promise);
}
