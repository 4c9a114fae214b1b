import { checkAll, invalidArgument, type KeyholdError } from "../domain/errors.ts";
import type { TimestampValue } from "../domain/expiry.ts";

/** A shorter raw key can be guessed. */
const MIN_CHARACTERS = 8;

interface RawKeyInput {
  readonly rawKey: string;
  readonly allowWeak?: boolean;
  readonly lookupPrefix?: string | undefined;
  readonly adoptBeforeTime?: TimestampValue | undefined;
}

/** Throws `INVALID_ARGUMENT` on an invalid import of a raw key. Runs in browsers too. */
export function checkRawKey(
  context: { looksLikeOurs(rawKey: string): boolean },
  { rawKey, allowWeak = false, lookupPrefix, adoptBeforeTime }: RawKeyInput,
): { readonly rawKey: string } {
  checkAll(
    () => {
      if (rawKey === "") throw invalidArgument("raw_key", "is required without raw_key_hash", "FIELD_REQUIRED");
      if (context.looksLikeOurs(rawKey)) throw looksLikeOurs("raw_key");
      if (allowWeak || rawKey.length >= 2 * MIN_CHARACTERS || [...rawKey].length >= MIN_CHARACTERS) return;
      const problem = `has fewer than ${MIN_CHARACTERS} characters and can be guessed; to import it anyway, set allow_weak`;
      throw invalidArgument("raw_key", problem, "STRING_TOO_SHORT");
    },
    () => rejectValue(lookupPrefix, "lookup_prefix", "requires raw_key_hash"),
    () => rejectValue(adoptBeforeTime, "adopt_before_time", "requires raw_key_hash"),
  );
  return { rawKey };
}

export function rejectValue(value: unknown, field: string, why: string): void {
  if (value !== undefined) throw invalidArgument(field, why, "VALUE_NOT_ALLOWED");
}

export function looksLikeOurs(field: string): KeyholdError {
  return invalidArgument(field, "must not have the form of a Keyhold secret or token", "VALUE_NOT_ALLOWED");
}
