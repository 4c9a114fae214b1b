import { invalidArgument } from "../../domain/errors.ts";

const MIN_BYTES = 6;
const MAX_BYTES = 64;

/** Parses the first characters of a raw key, 6 to 64 bytes of UTF-8. Throws `INVALID_ARGUMENT` naming `lookup_prefix`; the text is not quoted. */
export function parseLookupPrefix(text: string): string {
  if (!text.isWellFormed()) throw invalidArgument("lookup_prefix", "must be well-formed Unicode", "INVALID_CHARACTER");
  const length = Buffer.byteLength(text);
  if (length >= MIN_BYTES && length <= MAX_BYTES) return text;
  const reason = length < MIN_BYTES ? "STRING_TOO_SHORT" : "STRING_TOO_LONG";
  throw invalidArgument(
    "lookup_prefix",
    `has ${length} bytes (UTF-8); it must have ${MIN_BYTES} to ${MAX_BYTES}`,
    reason,
  );
}
