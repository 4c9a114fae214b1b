import { invalidArgument } from "../../domain/errors.ts";
import type { TextEncoding } from "../../domain/raw-key-hash.ts";

/** Encodings of arbitrary bytes. */
export type BinaryEncoding = Exclude<TextEncoding, "UTF8">;

/** Hexadecimal digits of the shortest value that is certainly not base64: a random one consists of them once in 10^14. */
const HEX_MIN_LENGTH = 32;

const HEX_DIGITS = /^[0-9a-f]*$/i;
/** In base64, = occurs only at the end. */
const ALGORITHM_NAME = /^(?:sha[\d/_-]+|hmac[\w-]*|md5|hex|base64(?:url)?)(?::|=(?=[^=]))|^\{[\w-]+\}/i;
const BASE64_FAMILY = /^[\w+/-]*={0,2}$/;

/**
 * Decodes text whose encoding was stated. It is never guessed: text that another encoding would explain is rejected, with that as the remedy.
 *
 * @throws `INVALID_ARGUMENT` naming `field`; the text is not quoted.
 */
export function decodeBytes(text: string, encoding: BinaryEncoding, field: string): Uint8Array {
  const problem = problemOfAny(text) ?? (encoding === "HEX" ? problemOfHex(text) : problemOfBase64(text, encoding));
  if (problem !== undefined) throw invalidArgument(field, problem);
  const bytes = encoding === "HEX" ? Buffer.from(text, "hex") : decodeBase64(text);
  if (bytes === undefined)
    throw invalidArgument(field, `is not canonical TEXT_ENCODING_${encoding}: unused bits at its end are not zero`);
  return bytes;
}

/** Decodes base64 or base64url without regard to padding. Returns undefined if unused bits at the end are not zero (RFC 4648 §3.5). */
export function decodeBase64(text: string): Uint8Array | undefined {
  const digits = text.replace(/=+$/, "");
  const bytes = Buffer.from(digits, "base64");
  return bytes.toString("base64url") === digits.replaceAll("+", "-").replaceAll("/", "_") ? bytes : undefined;
}

function problemOfAny(text: string): string | undefined {
  if (text === "") return "is empty";
  if (/^\s|\s$/.test(text)) return "remove the white space around it";
  return ALGORITHM_NAME.test(text) ? "begins with the name of an algorithm or encoding: remove the name" : undefined;
}

function problemOfHex(text: string): string | undefined {
  if (/^0x[0-9a-f]*$/i.test(text)) return "begins with 0x: remove it";
  if (!HEX_DIGITS.test(text)) return `is not hexadecimal${hintOfBase64(text)}`;
  return text.length % 2 === 0
    ? undefined
    : `has an odd number of hexadecimal digits, ${text.length}: is it truncated?`;
}

function hintOfBase64(text: string): string {
  if (!BASE64_FAMILY.test(text)) return "";
  return /[-_]/.test(text)
    ? ": did you mean TEXT_ENCODING_BASE64URL?"
    : ": did you mean TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL?";
}

function problemOfBase64(text: string, encoding: BinaryEncoding): string | undefined {
  if (text.length >= HEX_MIN_LENGTH && text.length % 2 === 0 && HEX_DIGITS.test(text)) {
    return `has ${text.length} hexadecimal digits: did you mean TEXT_ENCODING_HEX?`;
  }
  if (!BASE64_FAMILY.test(text))
    return `is not TEXT_ENCODING_${encoding}: it contains characters outside the alphabet of this encoding`;
  if (encoding === "BASE64" && /[-_]/.test(text))
    return "has base64url characters (- or _): did you mean TEXT_ENCODING_BASE64URL?";
  if (encoding === "BASE64URL" && /[+/]/.test(text))
    return "has base64 characters (+ or /): did you mean TEXT_ENCODING_BASE64?";
  const digits = text.replace(/=+$/, "").length;
  if (digits % 4 === 1) return `has an invalid TEXT_ENCODING_${encoding} length, ${digits}: is it truncated?`;
  if (digits !== text.length && text.length % 4 !== 0) return "has incomplete padding: complete it, or remove it";
  return undefined;
}

/** Returns whether bytes are certainly hexadecimal text: a hash that was encoded twice. */
export function isHexText(bytes: Uint8Array): boolean {
  return bytes.length >= HEX_MIN_LENGTH && HEX_DIGITS.test(Buffer.from(bytes).toString("latin1"));
}
