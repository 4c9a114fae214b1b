import { digestAll, digestCurrent } from "../credential/digest.ts";
import { rawKeyHint } from "../credential/hint.ts";
import { attempt, checkAll, fieldError, KeyholdError } from "../domain/errors.ts";
import { earlier } from "../domain/expiry.ts";
import { type ApiKey, newId, type SecretDigest } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { HashLookups } from "../domain/raw-key-hash.ts";
import { fastDigests, lookupPrefixDigests, rawKeyHashDigests } from "../hashing/digest.ts";
import { encodeBase64url } from "../lib/bytes.ts";
import { mapInSlices } from "../lib/time-slices.ts";
import { assertCanGrant } from "./authorization.ts";
import {
  checkImportSource,
  type HashedSource,
  type ImportRules,
  type ImportSource,
  type ImportSourceInput,
  identityOf,
} from "./import-source.ts";
import { identify, type NewKeyInput, newStoredKey, parseNewKey, requireRepeat } from "./new-key.ts";
import type { Insertion, KeysContext, NewHash, NewKey, SlowDigests } from "./ports.ts";
import { registerSchemes } from "./register-schemes.ts";

/** The input of an import: the fields of the key, and its raw key or a hash of it. */
export interface NewImportInput extends NewKeyInput, ImportSourceInput {}

export type ParsedImport = ReturnType<typeof parseNewImport>;

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseNewImport(context: ImportRules & Pick<KeysContext, "lifetimes">, input: NewImportInput) {
  const [source, parsed] = checkAll(
    () => checkImportSource(context, input),
    () => parseNewKey(context, input),
  );
  return { ...parsed, source };
}

/** Imports one key. Throws `RAW_KEY_ALREADY_EXISTS` if the raw key or its hash exists. */
export async function importKey(context: KeysContext, principal: Principal, input: ParsedImport): Promise<ApiKey> {
  const [result = lost()] = await importKeys(context, principal, [input]);
  if (result instanceof KeyholdError) throw result;
  return result;
}

const NO_LOOKUPS: HashLookups = { schemes: [], prefixLengths: [] };
const NO_DIGESTS: SlowDigests = new Map();

/** Attempts to store a key whose scheme is removed at the same time because no other key has it. */
const ATTEMPTS = 3;

type Outcome = ApiKey | KeyholdError;

/** One key of an import. Its outcome is null until it is stored or rejected. */
interface Item {
  readonly input: ParsedImport;
  outcome: Outcome | null;
}

/**
 * Imports keys independently and returns one result per input, in order. Of inputs with the same raw key or hash the first wins; salted
 * hashes are imported before all others, because only a stored one can be compared with a raw key.
 */
export async function importKeys(
  context: KeysContext,
  principal: Principal,
  inputs: readonly ParsedImport[],
): Promise<Outcome[]> {
  const items = inputs.map((input): Item => ({ input, outcome: null }));
  const isFirst = ({ input }: Item) => isSalted(input.source);
  for (let open of [items.filter(isFirst), items.filter((item) => !isFirst(item))]) {
    for (let attempt = 0; attempt < ATTEMPTS && open.length > 0; attempt++) {
      if (attempt > 0) await context.hashes.reload();
      open = await importOnce(context, principal, open);
    }
  }
  return items.map(({ outcome }) => outcome ?? lost());
}

function isSalted(source: ImportSource): boolean {
  return "hash" in source && source.hash.parameters !== null;
}

/** Imports keys. Returns those whose hash scheme was removed at the same time. */
async function importOnce(context: KeysContext, principal: Principal, items: readonly Item[]): Promise<Item[]> {
  const open = items.map((item) => ({ item }));
  const authorized = await settle(open, ({ item }) => ({ item, key: authorize(context, principal, item.input) }));
  const sources = authorized.map(({ item }) => item.input.source);
  const schemeIds = await registerSchemes(context.hashes, sources);
  const rawKeys = sources.flatMap((source) => ("rawKey" in source ? [source.rawKey] : []));
  const lookups = rawKeys.length === 0 ? NO_LOOKUPS : await context.hashes.lookups();
  const slow = lookups.prefixLengths.length === 0 ? NO_DIGESTS : await context.hashes.slowDigests(rawKeys);
  const prepared = await settle(authorized, ({ item, key }) => {
    const { source } = item.input;
    const fields =
      "rawKey" in source
        ? { key, ...rawKeyDigests(context, source.rawKey, lookups, slow) }
        : prepareHashed(context, source, key, schemeIds(source));
    const request = identify(item.input, identityOf(source), context.rings.fingerprint);
    return { item, row: { ...fields, request, principal } };
  });
  const { winners, losers } = firstOfEach(prepared.map(({ row }) => row));
  const inserted = await context.store.insert(winners);
  const insertions = new Map([...losers, ...winners.map((row, place) => [row, inserted[place]] as const)]);
  for (const { item, row } of prepared) {
    item.outcome = attempt(() => resultOf(context, principal, item.input, insertions.get(row)));
  }
  const isGone = (row: NewKey) => insertions.get(row)?.outcome === "hash_scheme_gone";
  return prepared.filter(({ row }) => isGone(row)).map(({ item }) => item);
}

/** Returns what `run` returns for each item. An error is the outcome of its item. */
async function settle<S extends { readonly item: Item }, T>(steps: readonly S[], run: (step: S) => T): Promise<T[]> {
  const results = await mapInSlices(steps, (step) => [step.item, attempt(() => run(step))] as const);
  return results.flatMap(([item, result]) => {
    if (!(result instanceof KeyholdError)) return [result];
    item.outcome = result;
    return [];
  });
}

function lost(): KeyholdError {
  return new KeyholdError("INTERNAL", "an import returned no result");
}

/** Returns the key to store, if the principal may import it. */
function authorize(context: KeysContext, principal: Principal, input: ParsedImport): ApiKey {
  const { source } = input;
  const now = context.clock.now();
  const hint = "rawKey" in source ? rawKeyHint(source.rawKey) : "";
  const key = newStoredKey({ kind: "imported", keyId: newId(now, context.random), hint }, input, principal, now);
  requireUnsharedNames(source, principal);
  return key;
}

/** Throws `CALLER_NOT_PERMITTED` for a salted hash of a restricted caller: a conflict of its prefix would reveal one of another actor's raw key. */
function requireUnsharedNames(source: ImportSource, { restrictions: { actorIds } }: Principal): void {
  if (actorIds === null || !isSalted(source)) return;
  const message = "an actor-restricted caller cannot import a salted hash";
  throw new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata: { field: "raw_key_hash.phc" } });
}

/** Returns the digests of a raw key, and those of its hashes: a key that is known by one of these hashes is the same key. */
function rawKeyDigests(
  { rings: { digest: ring } }: KeysContext,
  rawKey: string,
  { schemes }: HashLookups,
  slow: SlowDigests,
): Pick<NewKey, "digest" | "otherDigests"> {
  // Malformed Unicode has no digest, and `digestCurrent` throws.
  const [digest = digestCurrent(rawKey, ring), ...others] = digestAll(rawKey, ring);
  const hashed = schemes.flatMap((scheme) => fastDigests(rawKey, scheme, ring));
  return { digest, otherDigests: [...others, ...hashed, ...(slow.get(rawKey) ?? [])] };
}

/** A key that must be adopted by a time expires then at the latest, until it is adopted. */
function prepareHashed(
  { rings: { digest: ring } }: KeysContext,
  { hash, lookupPrefix, adoptBeforeTime }: HashedSource,
  key: ApiKey,
  schemeId: number,
): Pick<NewKey, "key" | "digest" | "otherDigests" | "hash"> {
  const [digest, ...otherDigests] = rawKeyHashDigests(hash, ring);
  if (digest === undefined) throw new KeyholdError("INTERNAL", "there is no server key");
  const lookup =
    lookupPrefix === null
      ? null
      : { length: Buffer.byteLength(lookupPrefix), digests: lookupPrefixDigests(lookupPrefix, ring) };
  const adoptedExpireTime = adoptBeforeTime === null ? null : key.expireTime;
  const newHash: NewHash = { schemeId, parameters: hash.parameters, adoptedExpireTime, lookup };
  const expireTime = earlier(key.expireTime, adoptBeforeTime);
  const hashed = { ...key, expireTime, hashAlgorithm: hash.scheme.algorithm, adoptBeforeTime };
  return { key: hashed, digest, otherDigests, hash: newHash };
}

/** Returns the keys to insert: the first with each raw key or hash and each prefix, and repeats of its request; and the outcome of the others. */
function firstOfEach(rows: readonly NewKey[]) {
  const first = new Map<string, NewKey>();
  const winners: NewKey[] = [];
  const losers: [NewKey, Insertion][] = [];
  for (const row of rows) {
    const own = [row.digest, ...row.otherDigests].map(nameOf);
    const prefix = row.hash?.lookup?.digests.slice(0, 1).map(nameOf) ?? [];
    const earlier = findFirst(first, own);
    if (earlier !== undefined && !isRepeat(row, earlier)) losers.push([row, { outcome: "raw_key_exists" }]);
    else if (earlier === undefined && findFirst(first, prefix) !== undefined)
      losers.push([row, { outcome: "lookup_prefix_exists" }]);
    else winners.push(row);
    if (earlier !== undefined) continue;
    for (const name of [...own, ...prefix]) first.set(name, first.get(name) ?? row);
  }
  return { winners, losers };
}

function findFirst(first: ReadonlyMap<string, NewKey>, names: readonly string[]): NewKey | undefined {
  return names.map((name) => first.get(name)).find((row) => row !== undefined);
}

function nameOf({ digest }: SecretDigest): string {
  return encodeBase64url(digest);
}

function isRepeat(a: NewKey, b: NewKey): boolean {
  return a.request !== null && a.request.requestId === b.request?.requestId;
}

function resultOf(
  context: KeysContext,
  principal: Principal,
  input: ParsedImport,
  insertion: Insertion | undefined,
): ApiKey {
  switch (insertion?.outcome) {
    case undefined:
      throw lost();
    case "inserted":
      return insertion.key;
    case "repeated":
      requireRepeat(input, identityOf(input.source), insertion.fingerprint, context.rings.fingerprint);
      assertCanGrant(insertion.key, principal);
      return insertion.key;
    case "lookup_prefix_exists":
      throw fieldError(
        "LOOKUP_PREFIX_ALREADY_EXISTS",
        "lookup_prefix",
        "belongs to another key that is not adopted; use a longer prefix, or adopt or delete that key first",
      );
    case "hash_scheme_gone":
      throw new KeyholdError("CONCURRENT_CHANGE", "hash formats are being changed concurrently; retry");
    case "raw_key_exists":
      if ("rawKey" in input.source) throw fieldError("RAW_KEY_ALREADY_EXISTS", "raw_key", "is already imported");
      throw fieldError(
        "RAW_KEY_ALREADY_EXISTS",
        "raw_key_hash",
        "a key with this raw key or this hash is already imported",
      );
  }
}
