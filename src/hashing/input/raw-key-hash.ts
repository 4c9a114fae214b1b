import { checkAll, invalidArgument } from "../../domain/errors.ts";
import type { HashAlgorithm, HashSchemeSpec, TextEncoding } from "../../domain/raw-key-hash.ts";
import { algorithmsOfSize, FAST_ALGORITHMS, type FastHashAlgorithm, isFastAlgorithm } from "../algorithms.ts";
import { algorithmOf, formatParameters } from "../phc/parameters.ts";
import { parsePhc } from "../phc/parse.ts";
import { decodeBytes, isHexText } from "./text-encoding.ts";

/** `RawKeyHash` of the protos. Undefined and null: absent. */
export interface RawKeyHashInput {
  readonly algorithm?: HashAlgorithm | null;
  readonly value?: string | null;
  readonly encoding?: TextEncoding | null;
  readonly prefix?: string | null;
  readonly suffix?: string | null;
  readonly hmacKeyId?: string | null;
  readonly phc?: string | null;
}

export interface ParsedRawKeyHash {
  readonly scheme: HashSchemeSpec;
  /** Salt and parameters of a slow hash as canonical text, at most 200 characters; null for a fast hash. */
  readonly parameters: string | null;
  /** The hash itself. Neither stored nor logged. */
  readonly output: Uint8Array;
}

/** Characters of a value or a phc. */
const MAX_LENGTH = 512;

/** Bytes of text before or after the raw key. */
const MAX_AFFIX_BYTES = 256;

/** bcrypt hashes no more bytes; the shortest lookup prefix is part of the raw key. */
const MAX_BCRYPT_AFFIX_BYTES = 72 - 6;

/** Sizes of algorithms that are not supported. */
const UNSUPPORTED_SIZES: Readonly<Record<number, string>> = { 16: "MD5", 20: "SHA-1", 28: "SHA-224" };

/**
 * Parses a hash of a raw key.
 *
 * @throws `INVALID_ARGUMENT` with every violation, by paths such as `raw_key_hash.value`. Values are not quoted.
 */
export function parseRawKeyHash(input: RawKeyHashInput): ParsedRawKeyHash {
  if (isGiven(input.phc)) return parseSlowHash(input, input.phc);
  if (!isGiven(input.algorithm) && !isGiven(input.value)) {
    throw invalidArgument("raw_key_hash", "must have either phc, or algorithm, value and encoding", "FIELD_REQUIRED");
  }
  return parseFastHash(input);
}

function parseFastHash(input: RawKeyHashInput): ParsedRawKeyHash {
  const algorithm = isGiven(input.algorithm) && isFastAlgorithm(input.algorithm) ? input.algorithm : null;
  const [, output, prefix, suffix, hmacKeyId] = checkAll(
    () => requireFastAlgorithm(input),
    () => parseValue(input, algorithm),
    () => parseAffix(input.prefix, "raw_key_hash.prefix"),
    () => parseAffix(input.suffix, "raw_key_hash.suffix"),
    () => parseHmacKeyId(input.hmacKeyId, algorithm),
  );
  return { scheme: { algorithm: algorithm as FastHashAlgorithm, prefix, suffix, hmacKeyId }, parameters: null, output };
}

function parseSlowHash(input: RawKeyHashInput, phc: string): ParsedRawKeyHash {
  const [{ parameters, output }, prefix, suffix] = checkAll(
    () => parsePhc(requireShort(phc, "raw_key_hash.phc")),
    () => parseAffix(input.prefix, "raw_key_hash.prefix"),
    () => parseAffix(input.suffix, "raw_key_hash.suffix"),
    () => rejectBesidePhc(input.algorithm, "raw_key_hash.algorithm"),
    () => rejectBesidePhc(input.value, "raw_key_hash.value"),
    () => rejectBesidePhc(input.encoding, "raw_key_hash.encoding"),
    () => rejectBesidePhc(input.hmacKeyId, "raw_key_hash.hmac_key_id"),
  );
  const algorithm = algorithmOf(parameters);
  if (algorithm === "BCRYPT" && Buffer.byteLength(prefix + suffix) > MAX_BCRYPT_AFFIX_BYTES) {
    throw invalidArgument(
      "raw_key_hash",
      `prefix and suffix exceed ${MAX_BCRYPT_AFFIX_BYTES} bytes; bcrypt uses only the first 72 bytes of prefix, raw key and suffix together`,
      "STRING_TOO_LONG",
    );
  }
  const scheme = { algorithm, prefix, suffix, hmacKeyId: null };
  return { scheme, parameters: formatParameters(parameters), output };
}

function requireFastAlgorithm({ algorithm, value }: RawKeyHashInput): void {
  if (!isGiven(algorithm)) {
    if (value?.startsWith("$")) return; // The violation of value names the remedy.
    throw invalidArgument("raw_key_hash.algorithm", "is required with value", "FIELD_REQUIRED");
  }
  if (isFastAlgorithm(algorithm)) return;
  throw invalidArgument(
    "raw_key_hash.algorithm",
    `HASH_ALGORITHM_${algorithm} has a salt: set phc to the whole hash, without algorithm, value and encoding`,
    "VALUE_NOT_ALLOWED",
  );
}

function parseValue(input: RawKeyHashInput, algorithm: FastHashAlgorithm | null): Uint8Array {
  const { value, encoding } = input;
  const path = "raw_key_hash.value";
  if (!isGiven(value)) throw invalidArgument(path, "is required with algorithm", "FIELD_REQUIRED");
  if (requireShort(value, path).startsWith("$")) {
    throw invalidArgument(path, "begins with $, like a salted hash: set phc instead of algorithm, value and encoding");
  }
  const output = decodeBytes(value, requireBinaryEncoding(encoding), path);
  if (isHexText(output)) {
    const problem = `is double-encoded: decode it once to ${output.length} hexadecimal digits, and set TEXT_ENCODING_HEX`;
    throw invalidArgument(path, problem);
  }
  if (algorithm !== null && output.length !== FAST_ALGORITHMS[algorithm].size) {
    throw invalidArgument(path, wrongSize(output.length, algorithm));
  }
  return output;
}

function requireShort(text: string, field: string): string {
  if (text.length <= MAX_LENGTH) return text;
  throw invalidArgument(
    field,
    `has ${text.length} characters, but at most ${MAX_LENGTH} are allowed`,
    "STRING_TOO_LONG",
  );
}

function requireBinaryEncoding(encoding: TextEncoding | null | undefined) {
  if (!isGiven(encoding))
    throw invalidArgument(
      "raw_key_hash.encoding",
      "is required with value: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL",
      "FIELD_REQUIRED",
    );
  if (encoding !== "UTF8") return encoding;
  throw invalidArgument(
    "raw_key_hash.encoding",
    "TEXT_ENCODING_UTF8 is only for HMAC keys; allowed: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64, TEXT_ENCODING_BASE64URL",
    "VALUE_NOT_ALLOWED",
  );
}

function wrongSize(size: number, algorithm: FastHashAlgorithm): string {
  const problem = `has ${size} bytes; HASH_ALGORITHM_${algorithm} needs ${FAST_ALGORITHMS[algorithm].size}`;
  const fitting = algorithmsOfSize(size);
  if (fitting !== undefined) return `${problem}: did you mean ${fitting}?`;
  const unsupported = UNSUPPORTED_SIZES[size];
  return unsupported === undefined ? problem : `${problem}: ${unsupported} has ${size}, but is not supported`;
}

function parseHmacKeyId(hmacKeyId: string | null | undefined, algorithm: FastHashAlgorithm | null): string | null {
  if (algorithm === null) return null;
  const { isKeyed } = FAST_ALGORITHMS[algorithm];
  if (isKeyed && !isGiven(hmacKeyId)) {
    throw invalidArgument(
      "raw_key_hash.hmac_key_id",
      `is required with HASH_ALGORITHM_${algorithm}: create an HMAC key first`,
      "FIELD_REQUIRED",
    );
  }
  if (!isKeyed && isGiven(hmacKeyId)) {
    throw invalidArgument(
      "raw_key_hash.hmac_key_id",
      `must not be set, because HASH_ALGORITHM_${algorithm} has no key; did you mean HASH_ALGORITHM_HMAC_SHA256 or HASH_ALGORITHM_HMAC_SHA512?`,
      "VALUE_NOT_ALLOWED",
    );
  }
  return isGiven(hmacKeyId) ? hmacKeyId : null;
}

function parseAffix(text: string | null | undefined, field: string): string {
  if (!isGiven(text)) return "";
  if (!text.isWellFormed()) throw invalidArgument(field, "must be well-formed Unicode", "INVALID_CHARACTER");
  if (Buffer.byteLength(text) <= MAX_AFFIX_BYTES) return text;
  throw invalidArgument(field, `must have at most ${MAX_AFFIX_BYTES} bytes`, "STRING_TOO_LONG");
}

function rejectBesidePhc(value: string | null | undefined, field: string): void {
  if (!isGiven(value)) return;
  throw invalidArgument(
    field,
    "must not be set together with phc, which contains the hash parameters",
    "VALUE_NOT_ALLOWED",
  );
}

/** An empty text is absent, as in proto3. */
function isGiven<T extends string>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null && value !== "";
}
