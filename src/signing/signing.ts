import type { KeyObject } from "node:crypto";
import { KeyholdError } from "../domain/errors.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import type { Random } from "../lib/random.ts";
import { type Jwks, jwksDocument } from "../token/jwks.ts";
import { type ActiveSigningKey, loadSigningKeys, type SigningKeys } from "../token/jwt/signing-keys.ts";
import { generateSigningKey, rewrapSigningKey } from "../token/signing-key.ts";
import type { SigningKeyStore } from "./store.ts";
import { UnknownKids } from "./unknown-kids.ts";

/** The signing keys of this node, kept up with those in the store. */
export interface Signing {
  /** Reads the keys again. Rejects if the active one does not unwrap: the root secret is not the one it was made under. */
  reload(): Promise<void>;
  /** The public key with this `kid`. One that is not known here is looked up in the store first, within bounds (`unknown-kids.ts`). */
  publicKey(kid: string): MaybePromise<KeyObject | undefined>;
  /**
   * The key to sign with, once the store knows that its tokens may live until then (milliseconds). Throws `INTERNAL` if there
   * is none.
   */
  signer(expireTime: number): MaybePromise<ActiveSigningKey>;
  /** What is published: as it is now, or when that cannot be read, as it was. */
  jwks(): MaybePromise<Jwks>;
  /** Whether there is a key to sign with, as far as is known. */
  readonly hasActive: boolean;
  /** Milliseconds since the key to sign with was made; null if there is none. */
  readonly activeAge: number | null;
}

export interface SigningContext {
  readonly store: SigningKeyStore;
  /** The ring "signing-key-wrap". */
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly random: Random;
  /** Another number when the keys may have changed since; null while nobody would tell, and what was read is of no use. */
  version(): number | null;
  /** Resolves when somebody would tell again: what is read from then on is so for every node. */
  renewed(): Promise<void>;
  /** Told once of each retired key that does not unwrap: the tokens that it signed are refused. */
  onUnusable?(kid: string): void;
  /** Told when a key that verified does so no longer: what it has verified is to be forgotten. */
  onLost?(): void;
}

/** The store is told of an expiry in steps of a day, so that most tokens cost no write. */
const EXPIRY_STEP = 86_400_000;

/** The signing keys of a node; the first one of all is made here. */
export async function createSigning(given: SigningContext): Promise<Signing> {
  const { store, clock } = given;
  const context = { ...given, onUnusable: oncePerKey(given.onUnusable) };
  let version = context.version();
  let keys: SigningKeys = await loadOrCreate(context);
  let loading: Promise<void> | null = null;
  const unknown = new UnknownKids();

  const load = async () => {
    const before = keys.verification;
    const versionBefore = context.version();
    keys = await loadKeys(context);
    if (version !== versionBefore) unknown.clear();
    version = versionBefore;
    if (before.keys().some((kid) => !keys.verification.has(kid))) context.onLost?.();
  };
  const reload = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = null;
    });
    return loading;
  };
  /** A load that had begun before may have read too early to see what this caller has heard of. */
  const reloadAfresh = async () => {
    if (context.version() === null) await context.renewed();
    await loading?.catch(() => undefined);
    await reload();
  };
  const isCurrent = () => version !== null && version === context.version();
  /** The keys as they are now: at hand, unless they may have changed. */
  const current = (): MaybePromise<SigningKeys> => (isCurrent() ? keys : reloadAfresh().then(() => keys));
  /** The same, or what was known last: a verifier that does not find a key yet refuses its tokens, which does no harm. */
  const known = (): MaybePromise<SigningKeys> => {
    const now = current();
    return now instanceof Promise ? now.catch(() => keys) : now;
  };
  const mayLookUp = (kid: string) => UnknownKids.mayExist(kid) && (!isCurrent() || unknown.mayLookUp(kid));
  const lookUp = async (kid: string) => {
    await reloadAfresh();
    const key = keys.verification.get(kid);
    if (key === undefined && isCurrent()) unknown.add(kid);
    return key;
  };
  const extend = async (active: ActiveSigningKey, expireTime: number) => {
    await store.extendTokens(active.kid, nextStep(expireTime));
    await reloadAfresh();
    return active;
  };

  return {
    reload: reloadAfresh,
    publicKey: (kid) => keys.verification.get(kid) ?? (mayLookUp(kid) ? lookUp(kid) : undefined),
    signer: (expireTime) =>
      andThen(current(), (keys) => {
        const { active } = keys;
        if (active === undefined) throw new KeyholdError("INTERNAL", "there is no signing key");
        return expireTime > knownExpiry(keys, active.kid) ? extend(active, expireTime) : active;
      }),
    jwks: () => andThen(known(), ({ records }) => jwksDocument(records, clock.now())),
    get hasActive() {
      return keys.active !== undefined;
    },
    get activeAge() {
      const record = keys.records.find(({ kid }) => kid === keys.active?.kid);
      return record === undefined ? null : clock.now() - record.createTime.getTime();
    },
  };
}

export interface RotateOptions {
  /** Whether to go on although the active key does not unwrap: its tokens are refused from then on. */
  readonly force?: boolean;
}

/**
 * Makes a new key the active one. Tokens of the key before it stay good until they expire. Rejects, and changes nothing, if that one
 * does not unwrap: then the root secret is not that of the servers, which could not use the new key either.
 */
export async function rotateSigningKey(
  context: SigningContext,
  { force = false }: RotateOptions = {},
): Promise<string> {
  const { store, ring, clock, random } = context;
  if (!force) await requireActiveKey(context);
  const key = generateSigningKey({ wrapKey: ring.current, random });
  await store.replaceActive(key, new Date(clock.now()));
  return key.kid;
}

/** Rejects if the key that signs does not unwrap: the root secrets given are not those of the database. */
export async function requireActiveKey(context: SigningContext): Promise<void> {
  await loadKeys(context);
}

/**
 * Wraps every key that a retired root secret protects under the current one, and answers how many. All servers must know that one.
 * What does not unwrap stays as it is.
 */
export async function rewrapSigningKeys({ store, ring, random }: SigningContext): Promise<number> {
  const records = (await store.list()).filter(({ wrapKeyId }) => wrapKeyId !== ring.current.id && ring.find(wrapKeyId));
  for (const record of records) await store.rewrap(rewrapSigningKey(record, ring, random), record.wrapKeyId);
  return records.length;
}

async function loadOrCreate(context: SigningContext): Promise<SigningKeys> {
  const { store, ring, clock, random } = context;
  const keys = await loadKeys(context);
  if (keys.active !== undefined) return keys;
  await store.addFirst(generateSigningKey({ wrapKey: ring.current, random }), new Date(clock.now()));
  return loadKeys(context);
}

async function loadKeys({ store, ring, clock, onUnusable }: SigningContext): Promise<SigningKeys> {
  const keys = loadSigningKeys(await store.list(), ring, clock.now());
  for (const kid of keys.unusable) onUnusable?.(kid);
  return keys;
}

/** Keys are read again and again; one that does not unwrap will not by itself. */
function oncePerKey(tell: SigningContext["onUnusable"]): (kid: string) => void {
  const told = new Set<string>();
  return (kid) => {
    if (!told.has(kid)) tell?.(kid);
    told.add(kid);
  };
}

function knownExpiry({ records }: SigningKeys, kid: string): number {
  return records.find((record) => record.kid === kid)?.tokensExpireTime?.getTime() ?? 0;
}

function nextStep(time: number): Date {
  return new Date((Math.floor(time / EXPIRY_STEP) + 2) * EXPIRY_STEP);
}
