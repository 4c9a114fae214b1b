import { digestCurrent, digestOthers } from "../credential/digest.ts";
import { attempt, checkAll, fieldError, KeyholdError } from "../domain/errors.ts";
import { type ApiKey, newId, type SecretDigest } from "../domain/key.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import type { HashLookups } from "../domain/raw-key-hash.ts";
import { fastDigests, lookupPrefixDigests, rawKeyHashDigests } from "../hashing/digest.ts";
import { lookupPrefixLength } from "../hashing/input/lookup-prefix.ts";
import { encodeBase64url } from "../lib/bytes.ts";
import { mapInSlices } from "../lib/time-slices.ts";
import { assertActorAllowed, assertCanGrant } from "./authorization.ts";
import {
  checkImportSource,
  type HashedSource,
  hintOf,
  type ImportRules,
  type ImportSource,
  type ImportSourceInput,
  identityOf,
} from "./import-source.ts";
import { checkNewKey, identify, type NewKeyInput, newStoredKey, type ParsedFields, requireRepeat } from "./new-key.ts";
import type { Insertion, KeysContext, NewHash, NewKey, SlowDigests } from "./ports.ts";
import { registerSchemes } from "./register-schemes.ts";

/** What is imported, and under which fields: a raw key, or a hash of it. */
export interface NewImportInput extends NewKeyInput, ImportSourceInput {}

/** The fields of an import that are stored in another form. */
export interface ParsedImport extends ParsedFields {
  readonly source: ImportSource;
}

/** Imports one key. Throws on invalid input, and `RAW_KEY_ALREADY_EXISTS` if the raw key or its hash exists. */
export async function importKey(context: KeysContext, principal: Principal, input: NewImportInput): Promise<ApiKey> {
  const parsed = checkNewImport(context, input);
  const [result] = await importKeys(context, principal, [{ input, parsed }]);
  if (result === undefined) throw new KeyholdError("INTERNAL", "an import had no result");
  if (result instanceof KeyholdError) throw result;
  return result;
}

/** An input that `checkNewImport` has accepted. */
export interface CheckedImport {
  readonly input: NewImportInput;
  /** As `checkNewImport` returned them. */
  readonly parsed: ParsedImport;
}

const NO_LOOKUPS: HashLookups = { schemes: [], prefixLengths: [] };
const NO_DIGESTS: SlowDigests = new Map();

/** Attempts to store a key whose scheme is removed at the same time because no other key has it. */
const ATTEMPTS = 3;

type Outcome = ApiKey | KeyholdError;

/**
 * Imports keys independently and returns one result per input, in order. Of inputs with the same raw key or hash the first wins; salted hashes are
 * imported before all others, because only a stored one can be compared with a raw key.
 */
export async function importKeys(
  context: KeysContext,
  principal: Principal,
  checked: readonly CheckedImport[],
): Promise<Outcome[]> {
  const isLater = ({ parsed: { source } }: CheckedImport) => !isSalted(source);
  const [salted, others] = [checked.filter((one) => !isLater(one)), checked.filter(isLater)];
  const first = (await importOnce(context, principal, salted, ATTEMPTS)).values();
  const second = (await importOnce(context, principal, others, ATTEMPTS)).values();
  return checked.map((one) => (isLater(one) ? second : first).next().value ?? lost());
}

function isSalted(source: ImportSource): boolean {
  return "hash" in source && source.hash.parameters !== null;
}

async function importOnce(
  context: KeysContext,
  principal: Principal,
  checked: readonly CheckedImport[],
  attempts: number,
): Promise<Outcome[]> {
  if (checked.length === 0) return [];
  const authorized = await mapInSlices(checked, (one) => attempt(() => authorize(context, principal, one)));
  const sources = checked.flatMap(({ parsed }, place) =>
    authorized[place] instanceof KeyholdError ? [] : [parsed.source],
  );
  const schemeIds = await registerSchemes(context.hashes, sources);
  const rawKeys = sources.flatMap((source) => ("rawKey" in source ? [source.rawKey] : []));
  const lookups = rawKeys.length === 0 ? NO_LOOKUPS : await context.hashes.lookups();
  const slow = lookups.prefixLengths.length === 0 ? NO_DIGESTS : await context.hashes.slowDigests(rawKeys);
  const prepared = await mapInSlices([...checked.entries()], ([place, { input, parsed }]) =>
    attempt((): NewKey => {
      const { source } = parsed;
      const key = authorized[place] ?? lost();
      if (key instanceof KeyholdError) throw key;
      const request = identify(input, identityOf(source), context.rings.fingerprint);
      if ("rawKey" in source) {
        return { key, ...rawKeyDigests(context, source.rawKey, lookups, slow), request, principal };
      }
      const schemeId = schemeIds(source);
      if (schemeId instanceof KeyholdError) throw schemeId;
      return { ...prepareHashed(context, source, key, schemeId), request, principal };
    }),
  );
  const { winners, losers } = firstOfEach(prepared);
  const insertions = await context.store.insert(winners);
  const outcomes = new Map([...losers, ...winners.map((key, place) => [key, insertions[place]] as const)]);
  const isGone = (key: NewKey | KeyholdError) =>
    !(key instanceof KeyholdError) && outcomes.get(key)?.outcome === "hash_scheme_gone";
  const results = prepared.map((result, index) => {
    if (result instanceof KeyholdError) return result;
    return attempt(() => resultOf(context, principal, checked[index], outcomes.get(result)));
  });
  if (attempts <= 1 || !prepared.some(isGone)) return results;
  await context.hashes.reload();
  const again = checked.filter((_, index) => isGone(prepared[index] ?? lost()));
  const later = (await importOnce(context, principal, again, attempts - 1)).values();
  return results.map((result, index) => (isGone(prepared[index] ?? lost()) ? (later.next().value ?? lost()) : result));
}

function lost(): KeyholdError {
  return new KeyholdError("INTERNAL", "an import had no result");
}

/** Like `checkNewKey`. Throws `INVALID_ARGUMENT` with every invalid field. */
export function checkNewImport(
  context: ImportRules & Pick<KeysContext, "lifetimes">,
  input: NewImportInput,
): ParsedImport {
  const [source, parsed] = checkAll(
    () => checkImportSource(context, input),
    () => checkNewKey(context, input),
  );
  return { ...parsed, source };
}

/** Returns the key to store, if the principal may import it. */
function authorize(context: KeysContext, principal: Principal, { input, parsed }: CheckedImport): ApiKey {
  assertActorAllowed(input.actorId, principal);
  requireUnsharedNames(parsed.source, principal);
  const now = context.clock.now();
  const keyId = newId(now, context.random);
  const createdBy = callerName(principal);
  const hint = hintOf(parsed.source);
  const key = newStoredKey({ kind: "imported", keyId, hint, parsed, now, createdBy }, input);
  assertCanGrant(key, principal);
  return key;
}

/** Throws `CALLER_NOT_PERMITTED` for a salted hash of a restricted caller: a conflict of its prefix would reveal one of another actor's raw key. */
function requireUnsharedNames(source: ImportSource, { restrictions: { actorIds } }: Principal): void {
  if (actorIds === null || !isSalted(source)) return;
  const message = "a caller that is restricted to actors may not import a hash with a salt";
  throw new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata: { field: "raw_key_hash.phc" } });
}

/** Returns the digests of a raw key, and those of its hashes: a key that is known by one of these hashes is the same key. */
function rawKeyDigests(
  { rings: { digest: ring } }: KeysContext,
  rawKey: string,
  { schemes }: HashLookups,
  slow: SlowDigests,
): Pick<NewKey, "digest" | "otherDigests"> {
  const digest = digestCurrent(rawKey, ring);
  const hashed = schemes.flatMap((scheme) => fastDigests(rawKey, scheme, ring));
  return { digest, otherDigests: [...digestOthers(rawKey, ring), ...hashed, ...(slow.get(rawKey) ?? [])] };
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
      : { length: lookupPrefixLength(lookupPrefix), digests: lookupPrefixDigests(lookupPrefix, ring) };
  const adoptedExpireTime = adoptBeforeTime === null ? null : key.expireTime;
  const newHash: NewHash = { schemeId, parameters: hash.parameters, adoptedExpireTime, lookup };
  const expireTime = earliest(key.expireTime, adoptBeforeTime);
  const hashed = { ...key, expireTime, hashAlgorithm: hash.scheme.algorithm, adoptBeforeTime };
  return { key: hashed, digest, otherDigests, hash: newHash };
}

function earliest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

/** Returns the keys to insert: the first with each raw key or hash and each prefix, and repeats of its request; and the outcome of the others. */
function firstOfEach(results: readonly (NewKey | KeyholdError)[]) {
  const first = new Map<string, NewKey>();
  const winners: NewKey[] = [];
  const losers: [NewKey, Insertion][] = [];
  for (const result of results) {
    if (result instanceof KeyholdError) continue;
    const own = [result.digest, ...result.otherDigests].map(nameOf);
    const prefix = result.hash?.lookup?.digests.slice(0, 1).map(nameOf) ?? [];
    const earlier = findFirst(first, own);
    if (earlier !== undefined && !isRepeat(result, earlier)) losers.push([result, { outcome: "raw_key_exists" }]);
    else if (earlier === undefined && findFirst(first, prefix) !== undefined)
      losers.push([result, { outcome: "lookup_prefix_exists" }]);
    else winners.push(result);
    if (earlier !== undefined) continue;
    for (const name of [...own, ...prefix]) first.set(name, first.get(name) ?? result);
  }
  return { winners, losers };
}

function findFirst(first: ReadonlyMap<string, NewKey>, names: readonly string[]): NewKey | undefined {
  const name = names.find((one) => first.has(one));
  return name === undefined ? undefined : first.get(name);
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
  checked: CheckedImport | undefined,
  insertion: Insertion | undefined,
): ApiKey {
  if (checked === undefined || insertion === undefined) throw lost();
  const { input, parsed } = checked;
  switch (insertion.outcome) {
    case "inserted":
      return insertion.key;
    case "repeated":
      requireRepeat(input, identityOf(parsed.source), insertion.fingerprint, context.rings.fingerprint);
      assertCanGrant(insertion.key, principal);
      return insertion.key;
    case "lookup_prefix_exists":
      throw fieldError(
        "LOOKUP_PREFIX_ALREADY_EXISTS",
        "lookup_prefix",
        "is that of another key that is not adopted: give a longer one, or adopt or delete that key first",
      );
    case "hash_scheme_gone":
      throw new KeyholdError("CONCURRENT_CHANGE", "hash formats are being changed concurrently; retry");
    case "raw_key_exists":
      if ("rawKey" in parsed.source) throw fieldError("RAW_KEY_ALREADY_EXISTS", "raw_key", "is imported already");
      throw fieldError("RAW_KEY_ALREADY_EXISTS", "raw_key_hash", "is imported already, or the key with this hash is");
  }
}
