import type { KeyObject } from "node:crypto";
import type { CredentialShapes } from "../credential/kinds.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { CredentialType, Verdict } from "../domain/verdict.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { IdentityCache } from "./identified.ts";
import type { FindKey, FindStale } from "./reader.ts";

/** What verification works with. */
export interface VerifyContext {
  readonly findKey: FindKey;
  /** For verdicts that are given, marked as stale, when `findKey` fails. */
  readonly findStale: FindStale;
  readonly identities: IdentityCache;
  readonly clock: Clock;
  readonly shapes: CredentialShapes;
  readonly issuer: string;
  readonly rings: { readonly tag: KeyRing; readonly digest: KeyRing; readonly macaroonRoot: KeyRing };
  /** The public key of a derived JWT, by `kid`; a promise if it is not at hand. */
  publicKey(kid: string): MaybePromise<KeyObject | undefined>;
  /** Told of every key whose credential was found valid. */
  onValid(keyId: string): void;
  /** Told of every verdict on a credential, with what the credential is by its form. */
  onVerdict(credentialType: CredentialType, verdict: Verdict): void;
  /** Told of a verdict that is marked as stale. */
  onStale(): void;
  /** Told of a fault of ours that made a verdict INTERNAL. */
  onFault(error: unknown): void;
}
