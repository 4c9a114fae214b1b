import { setTimeout as sleep } from "node:timers/promises";
import { invalidArgument, KeyholdError } from "../domain/errors.ts";
import type { HashLookups, HashScheme, HashSchemeSpec } from "../domain/raw-key-hash.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { Random } from "../lib/random.ts";
import { isFastAlgorithm } from "./algorithms.ts";
import { isSameScheme, toSchemes, unwrapHmacKey, wrapAffixes } from "./schemes.ts";
import type { HashSchemeStore, StoredHashing } from "./store.ts";

export type HashFormats = ReturnType<typeof createHashFormats>;

export interface HashFormatsContext {
  readonly store: HashSchemeStore;
  /** The key ring "hash-scheme-wrap". */
  readonly ring: KeyRing;
  readonly random: Random;
  /** A number that changes when the store may have changed; null while changes would not be noticed, so that what was read is unusable. */
  version(): number | null;
  /** Resolves when changes are noticed again: what is read from then on is current. */
  renewed(): Promise<void>;
  /** Called once for each scheme that does not unwrap: its keys are not found. */
  onUnusable?(schemeId: number, error: unknown): void;
}

/** Attempts to store a scheme or length while others store or remove some, over longer than one that no key has is kept. */
const ATTEMPTS = 10;

/** Milliseconds. */
const RETRY_DELAY = 250;

/** A positive `integer` of PostgreSQL. */
const MAX_ID = 2 ** 31 - 1;

/** Slots of schemes whose hashes have no salt: each verification of an unknown raw key computes all of them. */
const FAST_SLOTS = Array.from({ length: 8 }, (_, place) => 1 + place);
/** Slots of the others. */
const SLOW_SLOTS = Array.from({ length: 32 }, (_, place) => 9 + place);

/** Tells how the hashes of this node's keys were made, kept current with the store. */
export function createHashFormats(context: HashFormatsContext) {
  const { store, ring, random } = context;
  let version: number | null = null;
  let stored: StoredHashing = { schemes: [], hmacKeys: [], prefixLengths: [] };
  let lookups: HashLookups = { schemes: [], prefixLengths: [] };
  let loading: Promise<void> | null = null;
  /** How often this node has added something: an import does not wait for the notification of its own node. */
  let additions = 0;
  let loadedAdditions = 0;
  const reported = new Set<number>();

  const report = (schemeId: number, error: unknown) => {
    if (!reported.has(schemeId)) context.onUnusable?.(schemeId, error);
    reported.add(schemeId);
  };
  const load = async () => {
    const [versionBefore, additionsBefore] = [context.version(), additions];
    stored = await store.read();
    const known = new Map(lookups.schemes.map((scheme) => [scheme.schemeId, scheme]));
    lookups = { schemes: toSchemes(stored, ring, known, report), prefixLengths: stored.prefixLengths };
    [version, loadedAdditions] = [versionBefore, additionsBefore];
  };
  /** A load in flight may have read before the change that this caller must see. */
  const reload = async () => {
    await loading?.catch(() => undefined);
    loading ??= load().finally(() => {
      loading = null;
    });
    return loading;
  };
  const isCurrent = () => version !== null && version === context.version() && additions === loadedAdditions;
  const added = <T>(result: T): T => {
    additions++;
    return result;
  };
  const readCurrent = async () => {
    if (context.version() === null) await context.renewed();
    await reload();
    return lookups;
  };

  const findScheme = (spec: HashSchemeSpec): HashScheme | undefined =>
    lookups.schemes.find((scheme) => isSameScheme(scheme, spec));
  const requireHmacKey = ({ hmacKeyId }: HashSchemeSpec) => {
    if (hmacKeyId === null) return;
    const key = stored.hmacKeys.find((one) => one.hmacKeyId === hmacKeyId);
    // Throws if it does not unwrap: its keys would not be found.
    if (key !== undefined) return void unwrapHmacKey(key, ring);
    const description = "is not the id of an HMAC key; create it first";
    throw invalidArgument("raw_key_hash.hmac_key_id", description, "VALUE_NOT_ALLOWED");
  };
  const addScheme = async (spec: HashSchemeSpec, slot: number): Promise<number | null> => {
    const { algorithm, hmacKeyId } = spec;
    const schemeId = Buffer.from(random.bytes(4)).readInt32LE() & MAX_ID;
    const scheme = { schemeId, slot, algorithm, hmacKeyId, affixes: wrapAffixes(spec, slot, ring, random) };
    return added(await store.addScheme(scheme)) ? schemeId : null;
  };
  /** Stores a scheme; null if another node was faster. */
  const tryAdd = async (spec: HashSchemeSpec): Promise<number | null> => {
    requireHmacKey(spec);
    const slot = freeSlot(stored, spec);
    if (slot !== undefined) return addScheme(spec, slot);
    const unused = await store.removeUnused();
    await reload();
    if (freeSlot(stored, spec) !== undefined || findScheme(spec) !== undefined) return null;
    const competing = stored.schemes.filter(({ slot }) => slotsOf(spec).includes(slot));
    if (!competing.some(({ schemeId }) => unused.schemeIds.includes(schemeId))) throw tooManySchemes(spec);
    await sleep(RETRY_DELAY);
    return null;
  };
  /**
   * Returns the id of a scheme, which is stored unless it is already.
   *
   * @throws `INVALID_ARGUMENT` if there is no such HMAC key, `TOO_MANY_HASH_SCHEMES`
   */
  const schemeId = async (spec: HashSchemeSpec): Promise<number> => {
    const found = isCurrent() ? findScheme(spec) : undefined;
    if (found !== undefined) return found.schemeId;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      await reload();
      const known = findScheme(spec);
      if (known !== undefined) return known.schemeId;
      const id = await tryAdd(spec);
      if (id !== null) return id;
    }
    throw changedConcurrently();
  };
  /** Stores a length unless it is stored. @throws `TOO_MANY_PREFIX_LENGTHS` */
  const requirePrefixLength = async (length: number): Promise<void> => {
    if (isCurrent() && stored.prefixLengths.includes(length)) return;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (added(await store.addPrefixLength(length))) return;
      const { hasLength } = await store.removeUnused();
      if (added(await store.addPrefixLength(length))) return;
      await reload();
      if (!hasLength) throw tooManyLengths(stored.prefixLengths);
      await sleep(RETRY_DELAY);
    }
    throw changedConcurrently();
  };

  return {
    /** Returns the hash formats in use. Reads them again if they may have changed: a key is found once its import has returned. */
    lookups: (): MaybePromise<HashLookups> => (isCurrent() ? lookups : readCurrent()),
    /** Returns the last known lookups, for stale verdicts. */
    lastLookups: () => lookups,
    schemeId,
    requirePrefixLength,
    reload,
  };
}

function changedConcurrently(): KeyholdError {
  return new KeyholdError("CONCURRENT_CHANGE", "hash formats are being changed concurrently; retry");
}

function slotsOf({ algorithm }: HashSchemeSpec): readonly number[] {
  return isFastAlgorithm(algorithm) ? FAST_SLOTS : SLOW_SLOTS;
}

/** Returns the first free slot for a scheme. Two nodes that add the same one choose the same slot, and one of them finds that of the other. */
function freeSlot({ schemes }: StoredHashing, spec: HashSchemeSpec): number | undefined {
  return slotsOf(spec).find((slot) => schemes.every((one) => one.slot !== slot));
}

const REMEDY =
  "a format or prefix length is freed when its keys are adopted or deleted; to list unadopted keys, use the filter adopted = false";

/** Does not name those in use, which may be of actors to which the caller is not restricted. */
function tooManySchemes(spec: HashSchemeSpec): KeyholdError {
  const formats = `${slotsOf(spec).length} hash formats ${isFastAlgorithm(spec.algorithm) ? "without" : "with"} a salt`;
  return new KeyholdError("TOO_MANY_HASH_SCHEMES", `raw_key_hash: at most ${formats} are allowed; ${REMEDY}`);
}

function tooManyLengths(lengths: readonly number[]): KeyholdError {
  const inUse = lengths.toSorted((a, b) => a - b).join(", ");
  const message = `lookup_prefix: only prefixes of ${inUse} bytes are allowed, because the maximum number of prefix lengths is in use; ${REMEDY}`;
  return new KeyholdError("TOO_MANY_PREFIX_LENGTHS", message);
}
