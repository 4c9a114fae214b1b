import type { CredentialShapes } from "../credential/kinds.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { CredentialType, Verdict } from "../domain/verdict.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { VerificationKey } from "../token/jwt/signing-keys.ts";
import type { Adoption } from "./by-hash/adoption.ts";
import type { HashRecognition } from "./by-hash/recognition.ts";
import type { IdentityCache } from "./identified.ts";
import type { FindCandidates, FindKey, FindStale } from "./reader.ts";

/** The dependencies of verification. */
export interface VerifyContext {
  readonly findKey: FindKey;
  /** Finds what a raw key may be that `findKey` does not find. */
  readonly findCandidates: FindCandidates;
  /** Finds cached keys for stale verdicts when `findKey` fails. */
  readonly findStale: FindStale;
  /** Finds cached keys while they are current; undefined on a miss. */
  readonly findCached: FindStale;
  /** Null: none is cached. */
  readonly identities: IdentityCache | null;
  readonly clock: Clock;
  readonly shapes: CredentialShapes;
  readonly issuer: string;
  readonly rings: { readonly tag: KeyRing; readonly digest: KeyRing; readonly macaroonRoot: KeyRing };
  /** Recognizes raw keys by their hashes. Null: no key is known by its hash only. */
  readonly hashes: HashRecognition | null;
  /** Called with every valid verification, by this caller, of a key of which only a hash is known. */
  adopt(adoption: Adoption, caller: Principal): void;
  /** Returns the key of a derived JWT by `kid`; a promise if it must be loaded, which rejects if it cannot be. */
  publicKey(kid: string): MaybePromise<VerificationKey | undefined>;
  /** Whether JWTs may be accepted by keys that were returned before: none has been revoked. */
  hasCurrentPublicKeys(): boolean;
  /** Returns the last known key, for stale verdicts when the keys cannot be loaded. */
  lastPublicKey(kid: string): VerificationKey | undefined;
  /** Called with the key of every valid credential. */
  onValid(keyId: string): void;
  /** Called with every verdict and the type of the credential by its format. */
  onVerdict(credentialType: CredentialType, verdict: Verdict): void;
  /** Called for every stale verdict. */
  onStale(): void;
  /** Called with the error that made a verdict INTERNAL. */
  onFault(error: unknown): void;
}
