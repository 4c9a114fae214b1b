import type { KeySecret } from "../../domain/key.ts";
import type { HashLookups } from "../../domain/raw-key-hash.ts";
import type { Invalid } from "../../domain/verdict.ts";
import { equalBytes } from "../../lib/bytes.ts";
import { andThen, type MaybePromise } from "../../lib/maybe-promise.ts";
import type { VerifyContext } from "../context.ts";
import { strictest } from "../duplicates.ts";
import { belongsTo, type Identified, identifiedByHash, identifiedRawKey, nativeDigests } from "../identified.ts";
import type { CacheMode, VerifiableRecord } from "../reader.ts";
import { type Candidates, candidatesOf, isHashed } from "./candidates.ts";
import { proveSlow, slowSecretsOf } from "./prove.ts";
import type { HashRecognition } from "./recognition.ts";

/** A credential and its key; null: there is none. */
export interface Found {
  readonly identified: Identified;
  readonly stored: VerifiableRecord | null;
}

/** Returns the verdict if no hash could be computed, or throws the error. */
export type OnUnproven = (error: unknown, context: VerifyContext) => Invalid;

/**
 * Finds the key of a credential: by its id or its own digests, and if there is none, by hashes of the raw key. Rejects if the database cannot be
 * read.
 */
export function findKeyOf(
  context: VerifyContext,
  credential: string,
  identified: Identified,
  mode: CacheMode,
  onUnproven: OnUnproven,
  source: string,
): MaybePromise<Found | Invalid> {
  return andThen(context.findKey(identified.lookup, mode), (stored) =>
    isUnproven(identified, stored)
      ? findByHash(context, credential, identified, mode, onUnproven, source)
      : { identified, stored },
  );
}

/** Returns whether only a hash can show which key the credential is. */
export function isUnproven(identified: Identified, stored: VerifiableRecord | null): boolean {
  if (identified.kind !== "imported") return false;
  if (stored === null) return true;
  const [secret] = stored.secrets;
  return secret?.hash !== undefined && identified.last?.stored !== stored && !belongsTo(identified, secret);
}

/** Finds the key of a raw key that has none under its own digests. */
export function findByHash(
  context: VerifyContext,
  rawKey: string,
  identified: Identified,
  mode: CacheMode,
  onUnproven: OnUnproven,
  source: string,
): MaybePromise<Found | Invalid> {
  const { hashes } = context;
  const none = { identified, stored: null };
  if (hashes === null) return none;
  return andThen(hashes.lookups(), (lookups) => {
    const candidates = candidatesOf(rawKey, nativeDigests(identified), lookups, hashes);
    if (candidates === null) return none;
    const search: Search = { context, rawKey, identified, mode, onUnproven, source, hashes, lookups, candidates };
    return andThen(context.findCandidates(candidates.lookup, mode), (records) => chooseOrProve(search, records));
  });
}

interface Search {
  readonly context: VerifyContext;
  readonly rawKey: string;
  readonly identified: Identified;
  readonly mode: CacheMode;
  readonly onUnproven: OnUnproven;
  readonly source: string;
  readonly hashes: HashRecognition;
  readonly lookups: HashLookups;
  readonly candidates: Candidates;
}

/** A key that is stored by the raw key itself decides, then one with a fast hash. */
function chooseOrProve(search: Search, records: readonly VerifiableRecord[]): MaybePromise<Found | Invalid> {
  const found =
    chooseStored(search, records) ??
    chooseProven(
      records.filter((one) => isHashed(search.candidates, one)),
      search,
    );
  if (found !== null) return found;
  const slow = slowSecretsOf(records);
  return slow.length === 0 ? { identified: search.identified, stored: null } : findBySlowHash(search, slow);
}

/**
 * Computes slow hashes, and reads the keys again: what was revoked while they were computed is then seen. The second read alone decides which of
 * the keys that the raw key is proven to be is still there.
 */
async function findBySlowHash(search: Search, slow: ReturnType<typeof slowSecretsOf>): Promise<Found | Invalid> {
  const { context, rawKey, mode, hashes, lookups, candidates, onUnproven, source } = search;
  let proven: Awaited<ReturnType<typeof proveSlow>>;
  try {
    proven = await proveSlow(rawKey, slow, lookups, hashes, source);
  } catch (error) {
    return onUnproven(error, context);
  }
  const none = { identified: search.identified, stored: null };
  const [first] = proven;
  if (first === undefined) return none;
  const records = await context.findCandidates({ ...candidates.lookup, proven: first.keyId }, mode);
  const isProven = ({ key, secrets: [secret] }: VerifiableRecord) =>
    proven.some((one) => one.keyId === key.keyId && isSameHash(one.secret, secret));
  return chooseStored(search, records) ?? chooseProven(records.filter(isProven), search) ?? none;
}

function isSameHash({ digest, hash }: KeySecret, other: KeySecret | undefined): boolean {
  if (other?.hash === undefined || other.hash.schemeId !== hash?.schemeId) return false;
  return other.digest.keyId === digest.keyId && equalBytes(other.digest.digest, digest.digest);
}

function chooseStored({ identified }: Search, records: readonly VerifiableRecord[]): Found | null {
  const own = identifiedRawKey(nativeDigests(identified));
  const stored = strictest(records.filter(({ secrets }) => secrets.some((secret) => belongsTo(own, secret))));
  return stored === null ? null : { identified: own, stored };
}

function chooseProven(records: readonly VerifiableRecord[], { identified }: Search): Found | null {
  const stored = strictest(records);
  const digest = stored?.secrets[0]?.digest;
  if (stored === null || digest === undefined) return null;
  return { identified: identifiedByHash(nativeDigests(identified), digest), stored };
}
