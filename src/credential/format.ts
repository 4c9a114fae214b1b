import { crc32 } from "node:zlib";
import { invalidArgument } from "../domain/errors.ts";
import { decodeBase62, decodeBase62Number, encodeBase62, encodeBase62Number } from "../lib/base62.ts";

/**
 * An issued secret, `<prefix>_v1_<body>`:
 *
 *     kh_v1_ + 88 base62 digits of the payload (64 bytes, see issued-secret.ts) + 6 base62 digits of the checksum
 *
 * The checksum is CRC-32 (ISO-HDLC, as in zlib) of all text before it. It is not a security measure: it lets a scanner distinguish a real
 * secret from a random string offline, and detects every single-character error.
 */
export interface SecretFormat {
  readonly prefix: SecretPrefix;
  readonly payload: Uint8Array;
}

declare const checked: unique symbol;

/** The prefix of an issued secret: `[a-z][a-z0-9]{0,15}`. */
export type SecretPrefix = string & { readonly [checked]: "SecretPrefix" };

export const PAYLOAD_SIZE = 64;

const VERSION = "_v1_";
const CHECKSUM_DIGITS = 6;
const BODY_DIGITS = 94;
const PREFIX_PATTERN = "[a-z][a-z0-9]{0,15}";
const PREFIX_REGEXP = new RegExp(`^${PREFIX_PATTERN}$`);

/** Finds issued secrets in text, for secret scanners, which then verify the checksum. Valid in RE2, PCRE and JavaScript. */
export const SECRET_PATTERN = `${PREFIX_PATTERN}${VERSION}[0-9A-Za-z]{${BODY_DIGITS}}`;

/** Matches text in the shape of an issued secret; does not verify the checksum. */
export const SECRET_REGEXP = new RegExp(`^${SECRET_PATTERN}$`);

/** Parses a prefix. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseSecretPrefix(text: string, field = "KEYHOLD_SECRET_PREFIX"): SecretPrefix {
  if (PREFIX_REGEXP.test(text)) return text as SecretPrefix;
  throw invalidArgument(field, "must be a lower-case letter followed by up to 15 lower-case letters or digits");
}

/** Formats an issued secret. Throws `RangeError` unless the payload has 64 bytes. */
export function formatSecret({ prefix, payload }: SecretFormat): string {
  if (payload.length !== PAYLOAD_SIZE) throw new RangeError("the payload of a secret must have 64 bytes");
  const text = secretHead(prefix) + encodeBase62(payload);
  return text + encodeBase62Number(crc32(text), CHECKSUM_DIGITS);
}

/** Parses an issued secret; returns undefined for any text that `formatSecret` does not produce. Does not verify its tag. */
export function parseSecretFormat(text: string): SecretFormat | undefined {
  if (!SECRET_REGEXP.test(text)) return undefined;
  const covered = text.slice(0, -CHECKSUM_DIGITS);
  if (decodeBase62Number(text.slice(-CHECKSUM_DIGITS)) !== crc32(covered)) return undefined;
  const prefix = covered.slice(0, covered.indexOf("_")) as SecretPrefix;
  const payload = decodeBase62(covered.slice(prefix.length + VERSION.length));
  return payload && { prefix, payload };
}

/** Returns why a text that begins like an issued secret is none, as the end of a sentence about it. */
export function mistakeInSecret(text: string): string {
  const body = text.slice(text.indexOf(VERSION) + VERSION.length);
  if (/[^0-9A-Za-z]/.test(body)) return "contains a character that is not a letter or a digit";
  if (body.length !== BODY_DIGITS) {
    return `has ${body.length < BODY_DIGITS ? "fewer" : "more"} than ${BODY_DIGITS} characters after ${VERSION}`;
  }
  return "contains an incorrect character: the checksum does not match";
}

/** Returns the text before the body, such as `kh_v1_`. */
export function secretHead(prefix: SecretPrefix): string {
  return prefix + VERSION;
}
