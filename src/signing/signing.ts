import { invalidArgument, KeyholdError } from "../domain/errors.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import { isWrappedByRetired } from "../domain/wrapped-secret.ts";
import type { Clock } from "../lib/clock.ts";
import { andThen, type MaybePromise, recover } from "../lib/maybe-promise.ts";
import type { Random } from "../lib/random.ts";
import { type Jwks, jwksDocument } from "../token/jwks.ts";
import { ALGORITHM_NAMES, type AlgorithmName } from "../token/jwt/algorithms.ts";
import {
  type ActiveSigningKey,
  loadSigningKeys,
  type SigningKeys,
  type VerificationKey,
} from "../token/jwt/signing-keys.ts";
import {
  generateSigningKey,
  type NewSigningKey,
  newestFirst,
  rewrapSigningKey,
  type SigningKeyRecord,
} from "../token/signing-key.ts";
import { UnknownKids } from "./unknown-kids.ts";

export type Signing = Awaited<ReturnType<typeof createSigning>>;

export interface SigningKeyStore {
  list(): Promise<SigningKeyRecord[]>;
  /** Stores the first signing key. No-op if there is an active one. */
  addFirst(key: NewSigningKey, now: Date): Promise<void>;
  /** Atomically makes this the active key and retires the previous one. */
  replaceActive(key: NewSigningKey, now: Date): Promise<void>;
  /**
   * Deletes a key. If it is active, atomically makes `replacement` the active one; without a replacement an active key is not deleted. Returns
   * which of them happened: `kid` is null if no key was deleted, `replacement` is null if it was not active.
   */
  revoke(kid: string, replacement: NewSigningKey | null, now: Date): Promise<RevokedKids>;
  /** Replaces the wrapped form of a key if it is still wrapped under the server key `before`. */
  rewrap(key: NewSigningKey, before: string): Promise<void>;
  /** Records that tokens of this key may expire as late as `until`. Never moves the time back. */
  extendTokens(kid: string, until: Date): Promise<void>;
  /** Returns the names of the running nodes that cannot use keys with this algorithm, because they are of an earlier release. */
  nodesWithout(algorithm: AlgorithmName): Promise<string[]>;
}

export interface RevokedKids {
  readonly kid: string | null;
  readonly replacement: string | null;
}

export interface SigningContext {
  readonly store: SigningKeyStore;
  /** The key ring "signing-key-wrap". */
  readonly ring: KeyRing;
  /** Algorithm of new keys; null: that of the active key, or EdDSA if there is none. */
  readonly algorithm: AlgorithmName | null;
  readonly clock: Clock;
  readonly random: Random;
  /** A number that changes when the keys may have changed; null while changes would not be noticed, so that cached keys are unusable. */
  version(): number | null;
  /** Resolves when changes are noticed again: what is read from then on is current. */
  renewed(): Promise<void>;
  /** Called once for each retired key that does not unwrap: its tokens are rejected. */
  onUnusable?(kid: string): void;
  /** Called when a key no longer verifies: cached results of its tokens must be evicted. */
  onLost?(): void;
}

/** Milliseconds. Recorded expiries are rounded up to days, so that most tokens cost no write. */
const EXPIRY_STEP = 86_400_000;

const DEFAULT_ALGORITHM: AlgorithmName = "EdDSA";

/** Loads the signing keys of a node, which are kept current with those in the store. Generates the first one if there is none. */
export async function createSigning(options: SigningContext) {
  const { store, clock } = options;
  const context = { ...options, onUnusable: oncePerKey(options.onUnusable) };
  /** The version of all keys, and that of the public keys among them. */
  let version = context.version();
  let publicVersion = version;
  let keys: SigningKeys = await loadOrCreate(context);
  let loading: Promise<void> | null = null;
  const unknown = new UnknownKids();

  const load = async () => {
    const before = keys;
    const versionBefore = context.version();
    const records = await store.list();
    try {
      keys = toKeys(context, records);
      version = versionBefore;
    } catch (error) {
      // The active key does not unwrap. The others still verify, but not those that were revoked.
      keys = withoutRevoked(before, records);
      throw error;
    } finally {
      if (publicVersion !== versionBefore) unknown.clear();
      publicVersion = versionBefore;
      if (before.verification.keys().some((kid) => !keys.verification.has(kid))) context.onLost?.();
    }
  };
  /** A load in flight may have read before the change that this caller must see. */
  const reload = async () => {
    if (context.version() === null) await context.renewed();
    await loading?.catch(() => undefined);
    loading ??= load().finally(() => {
      loading = null;
    });
    await loading;
  };
  const isCurrent = () => version !== null && version === context.version();
  /** The current keys, cached unless they may have changed. */
  const current = (): MaybePromise<SigningKeys> => (isCurrent() ? keys : reload().then(() => keys));
  const hasCurrentPublicKeys = () => publicVersion !== null && publicVersion === context.version();
  const mayLookUp = (kid: string) => UnknownKids.mayExist(kid) && (!hasCurrentPublicKeys() || unknown.mayLookUp(kid));
  const lookUp = async (kid: string) => {
    await reload();
    const key = keys.verification.get(kid);
    if (key === undefined && hasCurrentPublicKeys()) unknown.add(kid);
    return key;
  };
  /**
   * Returns the key to sign a token that expires at `expireTime` (Unix time in milliseconds), after the store has recorded an expiry
   * at least as late. Throws `INTERNAL` if there is no key.
   */
  const signer = (expireTime: number): MaybePromise<ActiveSigningKey> =>
    andThen(current(), ({ active }) => {
      if (active === undefined) throw new KeyholdError("INTERNAL", "no such signing key");
      const recorded = active.record.tokensExpireTime?.getTime() ?? 0;
      return expireTime > recorded ? extend(active, expireTime) : active;
    });
  const extend = async (active: ActiveSigningKey, expireTime: number) => {
    await store.extendTokens(active.kid, nextStep(expireTime));
    await reload();
    // Otherwise it was revoked meanwhile, and no node would accept the token.
    return keys.verification.has(active.kid) ? active : signer(expireTime);
  };

  return {
    /** Reloads the keys. Rejects if the active one does not unwrap, which means that the root secret is another one. */
    reload,
    /**
     * Returns the key with this `kid`. Reads the keys again if they may have changed: from the return of a revocation on, the key is not
     * returned. Looks up an unknown one in the store, within limits (`unknown-kids.ts`).
     */
    publicKey: (kid: string): MaybePromise<VerificationKey | undefined> => {
      const key = hasCurrentPublicKeys() ? keys.verification.get(kid) : undefined;
      return key ?? (mayLookUp(kid) ? lookUp(kid) : undefined);
    },
    /** Whether results by a public key that was returned are still valid: no key has changed since. */
    hasCurrentPublicKeys,
    /** Returns the last known key with this `kid`, which may have been revoked since. */
    lastPublicKey: (kid: string): VerificationKey | undefined => keys.verification.get(kid),
    signer,
    /**
     * Returns the published key set; the last known one if the store cannot be read. A verifier that lacks a new key
     * rejects its tokens, which is safe.
     */
    jwks: (): MaybePromise<Jwks> => {
      const known = recover(current, () => keys);
      return andThen(known, ({ records }) => jwksDocument(records, clock.now()));
    },
    /** Algorithm of the active key; null if there is none among the last known keys. */
    get activeAlgorithm() {
      return keys.active?.algorithm.alg ?? null;
    },
    /** Age of the active key in milliseconds; null if there is none. */
    get activeAge() {
      return keys.active === undefined ? null : clock.now() - keys.active.record.createTime.getTime();
    },
  };
}

export interface RotateOptions {
  /** Whether to rotate although the active key does not unwrap: its tokens are rejected from then on. */
  readonly force?: boolean;
  /** Algorithm of the new key; by default that of the context. */
  readonly algorithm?: AlgorithmName;
}

/**
 * Generates a new active key and returns it. Tokens of the previous key stay valid until they expire. Rejects without a change if that one
 * does not unwrap: then the root secret is not that of the servers, and they could not use the new key either. Also rejects a change to an
 * algorithm that a running node does not know.
 */
export async function rotateSigningKey(
  context: SigningContext,
  { force = false, algorithm }: RotateOptions = {},
): Promise<NewSigningKey> {
  const { store, clock } = context;
  if (!force) await requireActiveKey(context);
  const current = await activeAlgorithm(store);
  const key = generate(context, algorithm ?? context.algorithm ?? current);
  if (key.publicJwk.alg !== current) await requireKnown(key.publicJwk.alg, store);
  await store.replaceActive(key, new Date(clock.now()));
  return key;
}

/**
 * Nodes that do not know it would sign nothing, reject the tokens of the new key and not start again. Covers the nodes with a lease at this
 * moment: one that joins later fails at its start.
 */
async function requireKnown(algorithm: AlgorithmName, store: SigningKeyStore): Promise<void> {
  const nodes = await store.nodesWithout(algorithm);
  if (nodes.length === 0) return;
  const why = `servers of an earlier release do not support ${algorithm}: upgrade ${nodes.join(", ")} first`;
  throw invalidArgument("algorithm", why);
}

/** Returns the algorithm of the active key; undefined if there is none, or a later release has created it. */
export async function activeAlgorithm(store: SigningKeyStore): Promise<AlgorithmName | undefined> {
  const active = newestFirst(await store.list()).find(({ retireTime }) => retireTime === null);
  return ALGORITHM_NAMES.find((name) => name === active?.publicJwk.alg);
}

/** Generates a signing key that is not stored. */
export function generate(
  { ring, random }: SigningContext,
  algorithm: AlgorithmName = DEFAULT_ALGORITHM,
): NewSigningKey {
  return generateSigningKey(algorithm, ring.current, random);
}

/** Rejects if the active key does not unwrap: the root secrets are not those of the database. */
export async function requireActiveKey(context: SigningContext): Promise<void> {
  await loadKeys(context);
}

/**
 * Rewraps every key that a retired root secret protects under the current one, which all servers must know, and returns their number.
 * A key that does not unwrap is left unchanged.
 */
export async function rewrapSigningKeys({ store, ring, random }: SigningContext): Promise<number> {
  const records = (await store.list()).filter((record) => isWrappedByRetired(record, ring));
  for (const record of records) await store.rewrap(rewrapSigningKey(record, ring, random), record.wrapKeyId);
  return records.length;
}

async function loadOrCreate(context: SigningContext): Promise<SigningKeys> {
  const { store, clock, algorithm } = context;
  const keys = await loadKeys(context);
  if (keys.active !== undefined) return keys;
  await store.addFirst(generate(context, algorithm ?? undefined), new Date(clock.now()));
  return loadKeys(context);
}

async function loadKeys(context: SigningContext): Promise<SigningKeys> {
  return toKeys(context, await context.store.list());
}

function toKeys({ ring, clock, onUnusable }: SigningContext, records: readonly SigningKeyRecord[]): SigningKeys {
  const keys = loadSigningKeys(records, ring, clock.now());
  for (const kid of keys.unusable) onUnusable?.(kid);
  return keys;
}

/** Returns the keys of which there is still a record. */
function withoutRevoked(keys: SigningKeys, records: readonly SigningKeyRecord[]): SigningKeys {
  const kids = new Set(records.map(({ kid }) => kid));
  return {
    ...keys,
    active: keys.active !== undefined && kids.has(keys.active.kid) ? keys.active : undefined,
    verification: new Map(keys.verification.entries().filter(([kid]) => kids.has(kid))),
    records: keys.records.filter(({ kid }) => kids.has(kid)),
  };
}

/** Keys are reloaded often, and a key that does not unwrap never will. */
function oncePerKey(report: SigningContext["onUnusable"]): (kid: string) => void {
  const reported = new Set<string>();
  return (kid) => {
    if (!reported.has(kid)) report?.(kid);
    reported.add(kid);
  };
}

function nextStep(time: number): Date {
  return new Date((Math.floor(time / EXPIRY_STEP) + 2) * EXPIRY_STEP);
}
