import type { NewSigningKey, SigningKeyRecord } from "../token/signing-key.ts";

/** Stores signing keys. */
export interface SigningKeyStore {
  list(): Promise<SigningKeyRecord[]>;
  /** Stores the first signing key. No-op if there is an active one. */
  addFirst(key: NewSigningKey, now: Date): Promise<void>;
  /** Atomically makes this the active key and retires the previous one. */
  replaceActive(key: NewSigningKey, now: Date): Promise<void>;
  /** Replaces the wrapped form of a key if it is still wrapped under the server key `before`. */
  rewrap(key: NewSigningKey, before: string): Promise<void>;
  /** Records that tokens of this key may expire as late as `until`. Never moves the time back. */
  extendTokens(kid: string, until: Date): Promise<void>;
}
