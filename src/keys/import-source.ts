import { checkAll, invalidArgument } from "../domain/errors.ts";
import { requireBounded, requireFuture, type TimestampValue, toMilliseconds } from "../domain/expiry.ts";
import { parseLookupPrefix } from "../hashing/input/lookup-prefix.ts";
import { parseRawKeyHash, type RawKeyHashInput } from "../hashing/input/raw-key-hash.ts";
import type { RequestSource } from "./new-key.ts";
import type { KeysContext } from "./ports.ts";
import { checkRawKey, looksLikeOurs, rejectValue } from "./raw-key-rules.ts";

/** What an import knows of its key. */
export interface ImportSourceInput {
  /** The key as its holders present it: 1 to 4096 bytes of UTF-8. Empty with `rawKeyHash`. */
  readonly rawKey: string;
  /** Whether the raw key may have fewer than 8 characters. */
  readonly allowWeak?: boolean;
  readonly rawKeyHash?: RawKeyHashInput | undefined;
  readonly lookupPrefix?: string | undefined;
  readonly adoptBeforeTime?: TimestampValue | undefined;
}

/** The same when it is parsed. */
export type ImportSource = { readonly rawKey: string } | HashedSource;

export type HashedSource = ReturnType<typeof checkHash>;

/** What the rules of an import depend on. */
export type ImportRules = Pick<KeysContext, "clock" | "looksLikeOurs">;

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function checkImportSource(context: ImportRules, input: ImportSourceInput): ImportSource {
  return input.rawKeyHash === undefined ? checkRawKey(context, input) : checkHash(context, input, input.rawKeyHash);
}

/** A fast hash has no lookup prefix. */
function checkHash(context: ImportRules, input: ImportSourceInput, hashInput: RawKeyHashInput) {
  const [, hash, lookupPrefix, adoptBeforeTime] = checkAll(
    () => rejectValue(input.rawKey || undefined, "raw_key", "must not be set together with raw_key_hash"),
    () => parseRawKeyHash(hashInput),
    () => checkLookupPrefix(context, input.lookupPrefix, hashInput),
    () => checkAdoptBeforeTime(input.adoptBeforeTime, context.clock.now()),
  );
  return { hash, lookupPrefix, adoptBeforeTime };
}

function checkLookupPrefix(
  context: ImportRules,
  lookupPrefix: string | undefined,
  { phc }: RawKeyHashInput,
): string | null {
  if (phc === undefined || phc === null || phc === "") {
    rejectValue(lookupPrefix, "lookup_prefix", "requires raw_key_hash.phc");
    return null;
  }
  if (lookupPrefix === undefined)
    throw invalidArgument("lookup_prefix", "is required with raw_key_hash.phc", "FIELD_REQUIRED");
  // Only an issued secret is recognized by its first characters.
  if (context.looksLikeOurs(lookupPrefix)) throw looksLikeOurs("lookup_prefix");
  return parseLookupPrefix(lookupPrefix);
}

function checkAdoptBeforeTime(time: TimestampValue | undefined, now: number): Date | null {
  if (time === undefined) return null;
  const end = toMilliseconds(time, "adopt_before_time");
  requireFuture(end - now, "adopt_before_time");
  requireBounded(end - now, "adopt_before_time");
  return new Date(end);
}

/** Returns what a repeat of the request must have in common with it. It is stored only as a keyed hash. */
export function identityOf(source: ImportSource): RequestSource {
  if ("rawKey" in source) return source;
  const { hash, lookupPrefix, adoptBeforeTime } = source;
  const output = Buffer.from(hash.output).toString("hex");
  return {
    rawKey: null,
    raw_key_hash: [hash.scheme, hash.parameters, output],
    lookup_prefix: lookupPrefix ?? undefined,
    adopt_before_time: adoptBeforeTime?.toISOString(),
  };
}
