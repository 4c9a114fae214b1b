import type { CredentialShapes } from "../credential/kinds.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { CredentialType, Verdict } from "../domain/verdict.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { VerificationKey } from "../token/jwt/signing-keys.ts";
import type { IdentityCache } from "./identified.ts";
import type { FindKey, FindStale } from "./reader.ts";

/** The dependencies of verification. */
export interface VerifyContext {
  readonly findKey: FindKey;
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
