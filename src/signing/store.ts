import type { NewSigningKey, SigningKeyRecord } from "../token/signing-key.ts";

/** Where signing keys are kept. */
export interface SigningKeyStore {
  list(): Promise<SigningKeyRecord[]>;
  /** Stores the first signing key of all; does nothing when there is an active one already. */
  addFirst(key: NewSigningKey, now: Date): Promise<void>;
  /** Makes this the active key and retires the one before, in one step. */
  replaceActive(key: NewSigningKey, now: Date): Promise<void>;
  /** Stores how a key is wrapped now, unless it is no longer wrapped under `before`. */
  rewrap(key: NewSigningKey, before: string): Promise<void>;
  /** Notes that tokens signed with this key may live until then; never moves the time back. */
  extendTokens(kid: string, until: Date): Promise<void>;
}
