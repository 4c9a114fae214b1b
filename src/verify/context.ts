import type { CredentialShapes } from "../credential/kinds.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import type { Charge, Charged } from "../domain/rate-limit.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import { type CredentialType, type Invalid, invalid, type Valid, type Verdict } from "../domain/verdict.ts";
import type { Adoption } from "../hashing/adopter.ts";
import type { FindByHash } from "../hashing/find-by-hash.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { VerificationKey } from "../token/jwt/signing-keys.ts";
import type { CachedCredential } from "./cache/cached-credential.ts";
import type { Loaded } from "./identified.ts";
import type { NoteUse } from "./last-used.ts";
import type { CacheMode, FindCached, FindKey, FindKeysOf } from "./reader.ts";

/** What a credential is presented for. A `VerifyApiKeyRequest` is a presentation. */
export interface Presentation {
  /** Address of the client that presented the credential. A key that is restricted to addresses is rejected without it. */
  readonly clientIp?: string | undefined;
  /** Scopes that the credential must have, all of them. */
  readonly requiredScopes: readonly string[];
  /** The service that it was presented to. Undefined: a token that has an audience is rejected; null: any audience is accepted. */
  readonly audience?: string | null | undefined;
  /** What it costs by limits of the key and of its actor; 1 by others than these. */
  readonly charges?: readonly Charge[];
}

/** What the verifications of one call share. A batch creates it once: an object per credential would cost as much as a step. */
export interface Verification {
  readonly context: VerifyContext;
  readonly mode: CacheMode;
  /** A key of which only a hash is known is adopted in the name of the caller, if there is one. */
  readonly caller: Principal | undefined;
  /** Whether the credential is one of several: a failure must not affect the others. */
  readonly isInBatch: boolean;
}

/** The cached credentials. */
export interface Credentials {
  /** Incremented when everything is evicted: what was identified before must not be cached. */
  readonly generation: number;
  /** Returns the cache key of a credential: a hash, computed once per call. */
  nameOf(credential: string): string;
  /** Returns undefined on a miss, or without a lease. */
  find(name: string): CachedCredential | undefined;
  /** Returns whether a cached credential is still as it was found, and may be used. */
  isCurrent(cached: CachedCredential): boolean;
  /** Finds a credential for a stale verdict. */
  findStale(name: string): CachedCredential | undefined;
  /** Caches a credential with its key, unless that may have changed since it was read, or `generation` has. */
  set(name: string, loaded: Loaded, generation: number): void;
  delete(name: string): void;
}

/** A verification of a credential that is not cached, for the limit on those that fail. */
export interface Attempt {
  /** Begins to read the database. Returns the error that denies it; null: it may be read. */
  read(): KeyholdError | null;
  /** Ends the verification, and counts a credential that belongs to no key. Returns the error that replaces its verdict. */
  end(isFailed: boolean): KeyholdError | null;
}

/** Keyhold's own limit on failed verifications. */
export interface FailureLimit {
  /** `clientIp` is the address of the client, as the caller states it. That of the caller is read now: it may disconnect. */
  begin(caller: Principal, clientIp: string | undefined): Attempt;
}

export interface VerifyContext {
  readonly findKey: FindKey;
  /** Finds every key that a raw key may be, by its digests and those of its hashes and prefixes. */
  readonly findAll: FindKeysOf;
  /** Whether verdicts may be stale when `findKey` fails. */
  readonly allowsStale: boolean;
  /** Finds cached keys for stale verdicts. */
  readonly findStale: FindCached;
  /** Null: no credential is cached. */
  readonly credentials: Credentials | null;
  readonly clock: Clock;
  readonly shapes: CredentialShapes;
  readonly issuer: string;
  readonly rings: { readonly tag: KeyRing; readonly digest: KeyRing; readonly macaroonRoot: KeyRing };
  /** Handles a raw key that is not found under its own digests. */
  readonly findByHash: FindByHash;
  /** Called with every valid verification, by this caller, of a key of which only a hash is known. */
  adopt(adoption: Adoption, caller: Principal): void;
  /** Returns the key of a derived JWT by `kid`; a promise if it must be loaded, which rejects if it cannot be. */
  publicKey(kid: string): MaybePromise<VerificationKey | undefined>;
  /** Whether JWTs may be accepted by keys that were returned before: none has been revoked. */
  hasCurrentPublicKeys(): boolean;
  /** Returns the last known key, for stale verdicts when the keys cannot be loaded. */
  lastPublicKey(kid: string): VerificationKey | undefined;
  /** Charges the limits of a key and of its actor for a valid credential; null: verifications cost nothing, as those of Keyhold's own callers. */
  readonly charge: ((credential: Valid, charges?: readonly Charge[]) => MaybePromise<Charged>) | null;
  /** Null: any number of verifications may fail. */
  readonly failures: FailureLimit | null;
  /** Called for every valid credential that is not cached, and for others once a minute. */
  readonly onValid: NoteUse;
  /** Called with every verdict and the type of the credential by its format. */
  onVerdict(credentialType: CredentialType, verdict: Verdict): void;
  /** Called for every stale verdict. */
  onStale(): void;
  /** Called with the error that made a verdict INTERNAL. */
  onFault(error: unknown): void;
}

const NO_VERDICT = invalid("INTERNAL", "the credential could not be verified");

/** Returns the verdict on a credential of a batch whose verification failed. Throws the error of a single verification. */
export function failed({ context, isInBatch }: Verification, error: unknown): Invalid {
  if (!isInBatch) throw error;
  // A flood of wrong raw keys must not flood the log.
  if (!(error instanceof KeyholdError && error.code === "OVERLOADED")) context.onFault(error);
  return NO_VERDICT;
}
