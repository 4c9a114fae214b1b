import type { Principal } from "../domain/principal.ts";
import type { HashAlgorithm } from "../domain/raw-key-hash.ts";
import type { Wrapped } from "../domain/wrapped-secret.ts";

export interface HmacKeyRecord extends Wrapped {
  readonly hmacKeyId: string;
  readonly createTime: Date;
  readonly createdBy: string;
}

export interface HashSchemeRecord {
  /** Random: no other scheme ever has it. */
  readonly schemeId: number;
  /** A place among at most so many: schemes that are added at once compete for it. */
  readonly slot: number;
  readonly algorithm: HashAlgorithm;
  readonly hmacKeyId: string | null;
  /** Null if nothing is put around the raw key. */
  readonly affixes: Wrapped | null;
}

/** Everything that finds raw keys by their hashes, read by one statement. */
export interface StoredHashing {
  readonly schemes: readonly HashSchemeRecord[];
  readonly hmacKeys: readonly HmacKeyRecord[];
  /** Lengths in bytes. */
  readonly prefixLengths: readonly number[];
}

/** Stores how hashes were made. A key with one of them cannot be stored before it, and no scheme or length is removed while a key has it. */
export interface HashSchemeStore {
  read(): Promise<StoredHashing>;
  /** Returns whether the scheme is stored; false if its slot is taken or its HMAC key is gone. */
  addScheme(scheme: HashSchemeRecord): Promise<boolean>;
  /** Returns whether the length is stored; false if there are as many as there may be. */
  addPrefixLength(length: number): Promise<boolean>;
  /** Removes the schemes and lengths that no key has, and returns those that are too new for it. */
  removeUnused(): Promise<NewUnused>;
}

/** What no key has yet, but may have within two seconds. */
export interface NewUnused {
  readonly schemeIds: readonly number[];
  /** Whether there is such a prefix length. */
  readonly hasLength: boolean;
}

/** Stores HMAC keys. A change resolves when it is propagated. */
export interface HmacKeyStore {
  /** Returns whether the key is stored; false if there is one with its id, or as many as there may be. */
  add(key: HmacKeyRecord, principal: Principal): Promise<boolean>;
  find(hmacKeyId: string): Promise<HmacKeyRecord | null>;
  /** Lists all with the number of keys that were imported by each and are not adopted, ordered by id. */
  list(): Promise<ListedHmacKey[]>;
  /** Deletes the key and its schemes, unless a key has one of them. */
  delete(hmacKeyId: string, principal: Principal): Promise<"deleted" | "absent" | "in use">;
}

export type ListedHmacKey = Pick<HmacKeyRecord, "hmacKeyId" | "createTime" | "createdBy"> & {
  readonly notAdoptedCount: number;
};

/** Replaces the wrapped form of what is still wrapped under the server key `before`. */
export interface RewrapStore {
  readonly read: HashSchemeStore["read"];
  rewrapHmacKey(hmacKeyId: string, to: Wrapped, before: string): Promise<void>;
  rewrapAffixes(schemeId: number, to: Wrapped, before: string): Promise<void>;
}
