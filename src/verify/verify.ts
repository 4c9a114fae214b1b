import { classify } from "../credential/kinds.ts";
import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { Principal } from "../domain/principal.ts";
import type { Invalid, Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise, recover } from "../lib/maybe-promise.ts";
import type { CachedCredential } from "./cache/cached-credential.ts";
import { present } from "./checks.ts";
import { failed, type Presentation, type Verification, type VerifyContext } from "./context.ts";
import { evaluate, isKeyOf, notFound } from "./evaluate.ts";
import { countUnidentified, loadWithinLimit } from "./failures.ts";
import { type Identified, type Loaded, oldVersionOf, withKey } from "./identified.ts";
import { identify } from "./identify.ts";
import { limited } from "./limited.ts";
import { type Found, load } from "./load.ts";
import type { CacheMode } from "./reader.ts";

/** One of several credentials to verify. */
export interface VerificationRequest extends Presentation {
  readonly credential: string;
}

/** Nothing is known of where a credential is presented. */
const NOTHING: Presentation = { requiredScopes: [] };

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
  return run({ context, mode, caller, isInBatch: false }, credential, presentation);
}

/** Verifies credentials and returns their verdicts in order. A failure of one does not affect the others. */
export function verifyAll(
  context: VerifyContext,
  requests: readonly VerificationRequest[],
  mode: CacheMode = "default",
  caller?: Principal,
): MaybePromise<Verdict[]> {
  const call = { context, mode, caller, isInBatch: true };
  const verdicts = requests.map((request) => run(call, request.credential, request));
  const isPending = verdicts.some((verdict) => verdict instanceof Promise);
  return isPending ? Promise.all(verdicts) : (verdicts as Verdict[]);
}

/** Where to cache a credential. */
interface CachePlace {
  readonly name: string;
  readonly generation: number;
}

/** Returns the verdict by the cached credential, or identifies it, loads its key and evaluates both. Synchronous if all data is cached. */
function run(call: Verification, credential: string, presentation: Presentation): MaybePromise<Verdict> {
  const { credentials } = call.context;
  if (credentials === null || call.mode === "no-store") return runUncached(call, credential, presentation, null);
  const place = { name: credentials.nameOf(credential), generation: credentials.generation };
  if (call.mode === "no-cache") return runUncached(call, credential, presentation, place);
  const cached = credentials.find(place.name);
  if (isUsable(call, cached)) return verdictOfCached(call, presentation, cached);
  return runUncached(call, credential, presentation, place);
}

/** The signing key of a cached JWT may have been revoked. */
function isUsable({ context }: Verification, cached: CachedCredential | undefined): cached is CachedCredential {
  return cached !== undefined && (cached.credentialType !== "JWT" || context.hasCurrentPublicKeys());
}

function runUncached(
  call: Verification,
  credential: string,
  presentation: Presentation,
  place: CachePlace | null,
): MaybePromise<Verdict> {
  const identified = andThen(identifyOrFail(call, credential), (one) => countUnidentified(call, presentation, one));
  if (identified instanceof Promise) return finish(call, credential, presentation, place, identified);
  if ("valid" in identified) return reject(call, credential, identified);
  const found = loadWithinLimit(call, credential, presentation, identified);
  if (found instanceof Promise) return finish(call, credential, presentation, place, found);
  return verdictOf(call, credential, presentation, place, found);
}

async function finish(
  call: Verification,
  credential: string,
  presentation: Presentation,
  place: CachePlace | null,
  step: Promise<Identified | Found | Invalid>,
): Promise<Verdict> {
  try {
    const reached = await step;
    const found = "lookup" in reached ? await loadWithinLimit(call, credential, presentation, reached) : reached;
    return verdictOf(call, credential, presentation, place, found);
  } catch (error) {
    return verifyStale(call, credential, presentation, error);
  }
}

function identifyOrFail(call: Verification, credential: string): MaybePromise<Identified | Invalid> {
  try {
    const identified = identify(call.context, credential);
    return identified instanceof Promise ? orFail(call, identified) : identified;
  } catch (error) {
    return failed(call, error);
  }
}

async function orFail(call: Verification, step: Promise<Identified | Invalid>): Promise<Identified | Invalid> {
  try {
    return await step;
  } catch (error) {
    // Without the public keys there is no verdict on any JWT.
    if (!call.context.hasCurrentPublicKeys()) throw error;
    return failed(call, error);
  }
}

/** Verifies by what is cached, without a lease, where that is allowed; otherwise throws `error`. */
function verifyStale(
  call: Verification,
  credential: string,
  presentation: Presentation,
  error: unknown,
): MaybePromise<Verdict> {
  const { credentials, allowsStale } = call.context;
  if (call.mode !== "default" || !allowsStale) throw error;
  const cached = credentials?.findStale(credentials.nameOf(credential));
  const stale = { ...call, context: staleContext(call.context, error), caller: undefined };
  if (cached !== undefined)
    return andThen(verdictOfLoaded(stale, presentation, cached.loaded), (verdict) => asStale(call, verdict));
  const identified = identify(stale.context, credential);
  if (identified instanceof Promise || "valid" in identified) throw error;
  return andThen(load(stale, credential, presentation, identified), (found) => {
    if ("valid" in found) return reject(call, credential, found);
    return andThen(verdictOf(stale, credential, presentation, null, found), (verdict) => asStale(call, verdict));
  });
}

function asStale({ context }: Verification, verdict: Verdict): Verdict {
  context.onStale();
  return { ...verdict, isStale: true };
}

/** Returns a context that reads nothing, for which the last known public keys and hash formats are current. `error` answers what is not cached. */
function staleContext(context: VerifyContext, error: unknown): VerifyContext {
  const findKey = (lookup: KeyLookup): VerifiableRecord | null => {
    const stored = context.findStale(lookup);
    if (stored === undefined) throw error;
    return stored;
  };
  return {
    ...context,
    findKey,
    findAll: (lookup) => {
      const stored = findKey(lookup);
      return stored === null ? [] : [stored];
    },
    findByHash: (presented) => context.findByHash({ ...presented, isStale: true }),
    publicKey: context.lastPublicKey,
  };
}

function verdictOf(
  call: Verification,
  credential: string,
  presentation: Presentation,
  place: CachePlace | null,
  found: Found | Invalid,
): MaybePromise<Verdict> {
  if ("valid" in found) return reject(call, credential, found);
  const { context } = call;
  const { identified, stored } = found;
  if (stored === null || !isKeyOf(identified, stored)) {
    if (place !== null) context.credentials?.delete(place.name);
    const verdict = notFound(credential);
    context.onVerdict(identified.credentialType, verdict);
    return verdict;
  }
  const loaded = withKey(identified, stored);
  if (place !== null) context.credentials?.set(place.name, loaded, place.generation);
  return verdictOfLoaded(call, presentation, loaded);
}

function verdictOfLoaded(call: Verification, presentation: Presentation, loaded: Loaded): MaybePromise<Verdict> {
  const { context, caller } = call;
  const evaluated = evaluate(loaded, presentation, context.clock.now());
  return andThen(charged(call, presentation, evaluated), (verdict) => {
    context.onVerdict(loaded.identified.credentialType, verdict);
    if (evaluated.valid && loaded.adoption !== null && caller !== undefined) context.adopt(loaded.adoption, caller);
    if (verdict.valid) context.onValid(verdict.keyId, oldVersionOf(loaded.secret), presentation);
    return verdict;
  });
}

/** Returns the cached verdict itself, without decoding the key, while the credential is in force. */
function verdictOfCached(
  call: Verification,
  presentation: Presentation,
  cached: CachedCredential,
): MaybePromise<Verdict> {
  const { context } = call;
  const now = context.clock.now();
  if (!cached.isInForce(now)) return verdictOfLoaded(call, presentation, cached.loaded);
  return andThen(charged(call, presentation, present(cached, cached, presentation)), (verdict) => {
    context.onVerdict(cached.credentialType, verdict);
    if (verdict.valid) cached.recordUse(now, context.onValid, presentation);
    return verdict;
  });
}

/** Returns the verdict after the limits of the key and of its actor have been charged, which may deny the verification. */
function charged(call: Verification, { charges }: Presentation, verdict: Verdict): MaybePromise<Verdict> {
  const { charge } = call.context;
  if (charge === null || !verdict.valid) return verdict;
  if (verdict.keyLimits === null && verdict.actorLimits === undefined) return verdict;
  return recover(
    () => andThen(charge(verdict, charges), (result) => limited(verdict, result)),
    (error) => failed(call, error),
  );
}

function reject({ context }: Verification, credential: string, verdict: Invalid): Invalid {
  context.onVerdict(classify(credential, context.shapes).type, verdict);
  return verdict;
}
