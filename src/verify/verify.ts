import { classify } from "../credential/kinds.ts";
import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { Principal } from "../domain/principal.ts";
import type { Invalid, Verdict } from "../domain/verdict.ts";
import { adoptionOf } from "../hashing/adopter.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { failed, type Presentation, type Verification, type VerifyContext } from "./context.ts";
import { evaluate } from "./evaluate.ts";
import { type Identified, type Loaded, nativeDigests } from "./identified.ts";
import { identify } from "./identify.ts";
import { load } from "./load.ts";
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

/** Identifies the credential, loads its key and evaluates both. Goes on asynchronously from the first step whose data is not cached. */
function run(call: Verification, credential: string, presentation: Presentation): MaybePromise<Verdict> {
  const identified = identifyOrFail(call, credential);
  if (identified instanceof Promise) return finish(call, credential, presentation, identified);
  if ("valid" in identified) return reject(call, credential, identified);
  const loaded = load(call, credential, presentation, identified);
  if (loaded instanceof Promise) return finish(call, credential, presentation, loaded);
  return verdictOf(call, credential, presentation, loaded);
}

async function finish(
  call: Verification,
  credential: string,
  presentation: Presentation,
  step: Promise<Identified | Loaded | Invalid>,
): Promise<Verdict> {
  try {
    const reached = await step;
    const loaded = "lookup" in reached ? await load(call, credential, presentation, reached) : reached;
    return verdictOf(call, credential, presentation, loaded);
  } catch (error) {
    return verifyStale(call, credential, presentation, error);
  }
}

function identifyOrFail(call: Verification, credential: string): MaybePromise<Identified | Invalid> {
  try {
    const identified = identify(call, credential);
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
  if (call.mode !== "default") throw error;
  const stale = { ...call, context: staleContext(call.context, error), caller: undefined };
  const identified = identify(stale, credential);
  if (identified instanceof Promise || "valid" in identified) throw error;
  return andThen(load(stale, credential, presentation, identified), (loaded) => {
    if ("valid" in loaded) return reject(call, credential, loaded);
    call.context.onStale();
    return { ...verdictOf(stale, credential, presentation, loaded), isStale: true };
  });
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
    identities: null,
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
  loaded: Loaded | Invalid,
): Verdict {
  if ("valid" in loaded) return reject(call, credential, loaded);
  const { context } = call;
  const { identified } = loaded;
  const verdict = evaluate(context, credential, presentation, loaded);
  context.onVerdict(identified.credentialType, verdict);
  if (verdict.valid) {
    context.onValid(verdict.key.keyId);
    if (identified.hashDigest !== undefined) adopt(call, loaded);
  }
  return verdict;
}

function adopt({ context, caller }: Verification, { identified, stored }: Loaded): void {
  if (stored === null || caller === undefined) return;
  const adoption = adoptionOf(nativeDigests(identified), stored);
  if (adoption !== null) context.adopt(adoption, caller);
}

function reject({ context }: Verification, credential: string, verdict: Invalid): Invalid {
  context.onVerdict(classify(credential, context.shapes).type, verdict);
  return verdict;
}
