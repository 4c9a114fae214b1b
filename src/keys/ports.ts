import type { SecretPrefix } from "../credential/format.ts";
import type { Lifetimes } from "../domain/expiry.ts";
import type { ApiKey, KeyKind, RevocationReason, SecretDigest, StoredKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { Quota, RateLimit } from "../domain/rate-limit.ts";
import type { RawKeyHash } from "../domain/raw-key-hash.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Valid } from "../domain/verdict.ts";
import type { HashFormats } from "../hashing/hash-formats.ts";
import type { ParsedRawKeyHash } from "../hashing/input/raw-key-hash.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { Random } from "../lib/random.ts";
import type { ActiveSigningKey } from "../token/jwt/signing-keys.ts";
import type { TokenContent } from "../token/token.ts";
import type { TokenAlgorithm } from "./derive.ts";
import type { KeyFilter } from "./filter.ts";
import type { ListOrder, ListPosition } from "./list-order.ts";

/** The dependencies of the verbs in this folder. */
export interface KeysContext {
  readonly store: KeyStore;
  readonly bulk: BulkStore;
  readonly hashes: HashRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly secretPrefix: SecretPrefix;
  readonly lifetimes: Lifetimes;
  /** Server keys by purpose (`domain/server-keys.ts`). */
  readonly rings: {
    readonly tag: KeyRing;
    readonly digest: KeyRing;
    readonly fingerprint: KeyRing;
    readonly pageToken: KeyRing;
  };
  /** Returns whether a raw key has the shape of a credential issued by Keyhold, and so may not be imported. */
  looksLikeOurs(rawKey: string): boolean;
}

/** A key to insert, with the digest of its first secret. */
export interface NewKey {
  readonly key: ApiKey;
  readonly digest: SecretDigest;
  /** Present if only a hash of the raw key is known. */
  readonly hash?: NewHash;
  /** Digests under the other server keys of the ring, and those of hashes of the raw key: a key with one of them is the same key. */
  readonly otherDigests: readonly SecretDigest[];
  readonly request: RequestIdentity | null;
  /** Who creates it. */
  readonly principal: Principal;
}

export interface NewHash extends RawKeyHash {
  /** When the key expires once it is adopted, if that is not `ApiKey.expireTime`; null: never. */
  readonly adoptedExpireTime: Date | null;
  /** With a slow hash: the prefix of the raw key by which it is looked up. */
  readonly lookup: {
    /** Bytes. */
    readonly length: number;
    /** Under every server key of the ring. No other key that is not adopted has one of them. */
    readonly digests: readonly SecretDigest[];
  } | null;
}

/** The identity of a request (AIP-155), with a keyed hash of its content. */
export interface RequestIdentity {
  readonly requestId: string;
  readonly fingerprint: Uint8Array;
}

export type Insertion =
  | { readonly outcome: "inserted"; readonly key: ApiKey }
  | { readonly outcome: "repeated"; readonly key: ApiKey; readonly fingerprint: Uint8Array }
  | { readonly outcome: "raw_key_exists" }
  /** Another key that is not adopted has the same prefix. */
  | { readonly outcome: "lookup_prefix_exists" }
  /** The scheme or prefix length of the hash was removed, because no key had it. */
  | { readonly outcome: "hash_scheme_gone" };

/** Identifies the key of an operation; `kind` is null for either. */
export interface KeyName {
  readonly keyId: string;
  readonly kind: KeyKind | null;
}

/** The new values of an update. Applied only if its immutable fields equal those of the key. */
export interface KeyUpdate {
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly expiry?: NewExpiry;
  /** Canonical CIDR blocks; null: any address. */
  readonly allowedCidrs?: readonly string[] | null;
  /** Null: none. */
  readonly rateLimits?: readonly RateLimit[] | null;
  /** Null: none. */
  readonly quotas?: readonly Quota[] | null;
  /** Immutable. */
  readonly actorId?: string;
  /** Immutable. */
  readonly restrictedToActorIds?: readonly string[];
}

/**
 * When a key shall expire. Applied only if it is the expiry that the key has, or a later time than `KeyStore.expiryTime` that the maximum
 * lifetime allows: a key may always be shortened.
 */
export interface NewExpiry {
  /** Null: never. */
  readonly time: Date | null;
  /** Maximum lifetime from the creation of the key, in milliseconds; null: none. */
  readonly maxKeyTtl: number | null;
}

export interface Rotation {
  /** Identifies the new secret among those of its key. */
  readonly version: number;
  readonly digest: SecretDigest;
  readonly hint: string;
  /** When the previous secret becomes invalid; null for immediately, like all older ones. */
  readonly graceEnd: Date | null;
}

export interface Revocation {
  readonly reason: RevocationReason;
  readonly description: string | null;
}

export type KeyMutation =
  | ({ readonly verb: "update" } & KeyUpdate)
  | ({ readonly verb: "rotate" } & Rotation)
  | { readonly verb: "endGrace" }
  | { readonly verb: "adjustQuota"; readonly quota: string; readonly delta: number }
  | ({ readonly verb: "revoke" } & Revocation)
  | { readonly verb: "disable"; readonly reason: string | null }
  | { readonly verb: "enable" }
  | { readonly verb: "delete" };

export interface ListQuery {
  /** Null for both kinds. */
  readonly kind: KeyKind | null;
  /** Return the keys of these actors only; null: of any. */
  readonly actorIds: readonly string[] | null;
  readonly filter: KeyFilter;
  readonly order: ListOrder;
  /** The last key of the previous page; null for the first page. */
  readonly after: ListPosition | null;
  readonly limit: number;
}

/** A key with its value in the order of the list (`ListPosition.value`). */
export interface ListedKey extends ApiKey {
  readonly orderValue: string | null;
}

/**
 * Stores keys. Each change is atomic, and durable when the promise resolves. It returns the changed or deleted key, or null if its
 * condition did not hold: the key exists (with that kind), is not revoked, for all but revoke has not expired, and the principal may know
 * of it and change it (`isVisible`, `assertCanManage`, `assertCanGrant`).
 */
export interface KeyStore {
  /** Returns one result per key, in order. Of keys with the same raw key the first is inserted. */
  insert(keys: readonly NewKey[]): Promise<Insertion[]>;
  get(name: KeyName): Promise<StoredKey | null>;
  /**
   * Returns the time by which a change judges whether a key has expired: the latest by the clocks of this node (`now`), the database and all
   * nodes. Disable takes the earliest: a key that some node still accepts can be disabled.
   */
  expiryTime(verb: KeyMutation["verb"], now: Date): Promise<Date>;
  /** Rejects with `LIST_TOO_SLOW` if the database finds the keys that match the filter too slowly. */
  list(query: ListQuery, now: Date): Promise<ListedKey[]>;
  /** Returns a key that is disabled or enabled already unchanged, once that is propagated. */
  change(name: KeyName, change: KeyMutation, principal: Principal, now: Date): Promise<ApiKey | null>;
}

/** What is done to each of many keys. */
export type BulkChange = Extract<KeyMutation, { verb: "revoke" | "disable" }>;

/** Keys that one statement changes: one slice of a call that changes many. */
export interface ManyChange {
  readonly keyIds: readonly string[];
  readonly change: BulkChange;
  readonly principal: Principal;
  /** Whether the credential of the principal must still be valid. Not if the call itself has revoked it. */
  readonly requiresCaller: boolean;
  readonly now: Date;
}

/** The keys of an operation, and what is done to them: those that match, that the change would change, and that the principal may change. */
export interface BulkSelection {
  readonly filter: KeyFilter;
  /** The `now` of the filter. */
  readonly filterTime: Date;
  readonly change: BulkChange;
  /** The key that the principal has presented is not selected. */
  readonly principal: Principal;
}

/** An operation at its begin. */
export interface NewBulkOperation {
  readonly requestId: string;
  readonly verb: BulkChange["verb"];
  /** A keyed hash of the request and its caller. */
  readonly fingerprint: Uint8Array;
  /** For people, such as `admin-token:<key_id>`. */
  readonly caller: string;
  /** The `now` of the filter. */
  readonly startTime: Date;
  readonly matchedCount: number;
  /** The newest key that matched, which bounds the operation; null: none matched. */
  readonly throughKeyId: string | null;
}

/** An operation as stored. Its keys are changed in ascending order. */
export interface BulkOperation extends Omit<NewBulkOperation, "verb" | "caller"> {
  /** The last key that was examined. */
  readonly afterKeyId: string;
  readonly changedCount: number;
  readonly done: boolean;
}

/**
 * Stores operations that change many keys, and changes the keys: those of an operation, or the descendants of an admin token, which are the
 * keys that were created with it, those that were created with them, and so on.
 */
export interface BulkStore {
  /** Returns how many keys are selected, and the newest of them. */
  count(selection: BulkSelection): Promise<Pick<NewBulkOperation, "matchedCount" | "throughKeyId">>;
  find(requestId: string): Promise<BulkOperation | null>;
  /** Stores the operation, or returns that which another call has begun with its request id. Forgets operations that ended long ago. */
  begin(operation: NewBulkOperation): Promise<BulkOperation>;
  /** Returns the ids of the next keys of the operation, in ascending order, at most `limit`. */
  select(operation: BulkOperation, selection: BulkSelection, limit: number): Promise<string[]>;
  /**
   * Changes the next keys of the operation, and returns the ids of those that it has changed, with the operation as it is then. With
   * `isLast` it ends. Keys and operation are changed in one transaction, and only if the operation is still in this state: another call may
   * have advanced it. Resolves when all changes of the operation are propagated to the other nodes.
   *
   * @throws `CHANGE_UNCONFIRMED`; `CALLER_UNAUTHENTICATED` if the principal's credential is not valid any more; `CONCURRENT_CHANGE` if the
   * operation was forgotten
   */
  advance(
    operation: BulkOperation,
    change: ManyChange & BulkSelection,
    isLast: boolean,
  ): Promise<{ readonly operation: BulkOperation; readonly changed: readonly string[] }>;
  /** Resolves when this node has received every change that is committed now, by whichever node. @throws `DATABASE_UNAVAILABLE` */
  caughtUp(): Promise<void>;
  /** Returns the ids of descendants that the change would change and the principal may change, at most `limit`. */
  findDescendants(keyId: string, change: Omit<ManyChange, "keyIds">, limit: number): Promise<string[]>;
  /**
   * Changes descendants, and returns the ids of those that it has changed: fewer if another call has changed some.
   *
   * @throws `CALLER_UNAUTHENTICATED` if the principal's credential is not valid any more, with nothing changed; `CHANGE_UNCONFIRMED`
   */
  changeDescendants(change: ManyChange): Promise<readonly string[]>;
  /** Returns the number of descendants that are not revoked, among those that the principal may see. */
  countDescendants(keyId: string, principal: Principal): Promise<number>;
}

/** By raw key. */
export type SlowDigests = ReadonlyMap<string, readonly SecretDigest[]>;

/** Stores how hashes were made, before keys with them are stored. */
export interface HashRegistry extends Pick<HashFormats, "schemeId" | "requirePrefixLength" | "reload" | "lookups"> {
  /** @throws `INVALID_ARGUMENT` if this machine cannot compute the hash. */
  requireSupported(hash: ParsedRawKeyHash): Promise<void>;
  /** Returns the stored digests of slow hashes of each raw key. Rejects with `OVERLOADED` if too many hashes wait to be computed. */
  slowDigests(rawKeys: readonly string[]): Promise<SlowDigests>;
}

/** The dependencies of `deriveToken`. */
export interface DeriveContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly issuer: string;
  readonly limits: TokenLimits;
  /** The ring "macaroon-root". */
  readonly macaroonRoot: KeyRing;
  /** Returns the key to sign a JWT that expires at this time (milliseconds); a promise if the store must record the expiry first. */
  signer(expireTime: number): MaybePromise<ActiveSigningKey>;
  /** Called with the parent and its verdict, before the signing key is read: a token must not be cached if that key is revoked meanwhile. */
  cacheToken(credential: string, parent: Valid): CacheToken;
}

/** Caches a derived token, so that its first verification need not check its signature. `content` is what the token states. */
export type CacheToken = (token: string, algorithm: TokenAlgorithm, content: TokenContent) => void;

/** What a server permits in tokens. */
export interface TokenLimits {
  /** Maximum lifetime in milliseconds; a longer one is cut. */
  readonly maxTtl: number;
  /** Registered claims that custom claims may set. */
  readonly allowedClaims: ReadonlySet<string>;
}
