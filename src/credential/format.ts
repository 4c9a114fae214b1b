import { crc32 } from "node:zlib";
import { invalidArgument } from "../domain/errors.ts";
import { decodeBase62, decodeBase62Number, encodeBase62, encodeBase62Number } from "../lib/base62.ts";

/**
 * The text form of an issued secret, `<prefix>_v1_<body>`:
 *
 *     kh_v1_ + 88 base62 digits of the payload (64 bytes, see issued-secret.ts) + 6 base62 digits of the checksum
 *
 * The checksum is the CRC-32 (ISO-HDLC, as in zlib) of all the text before it. It is no protection: it lets anyone tell a
 * real secret from a random string without asking us, and catches every single wrong character.
 */
export interface SecretFormat {
  readonly prefix: SecretPrefix;
  readonly payload: Uint8Array;
}

declare const checked: unique symbol;

/** What an issued secret begins with: `[a-z][a-z0-9]{0,15}`. */
export type SecretPrefix = string & { readonly [checked]: "SecretPrefix" };

export const PAYLOAD_SIZE = 64;

const VERSION = "_v1_";
const CHECKSUM_DIGITS = 6;
const PREFIX_PATTERN = "[a-z][a-z0-9]{0,15}";
const PREFIX_REGEXP = new RegExp(`^${PREFIX_PATTERN}$`);

/** Finds issued secrets in other text: for secret scanners, which then test the checksum. The same in RE2, PCRE and JavaScript. */
export const SECRET_PATTERN = `${PREFIX_PATTERN}${VERSION}[0-9A-Za-z]{94}`;

/** Matches a text that is an issued secret in shape; the checksum is still to be tested. */
export const SECRET_REGEXP = new RegExp(`^${SECRET_PATTERN}$`);

/** Throws `INVALID_ARGUMENT` naming `field`. */
export function parseSecretPrefix(text: string, field = "KEYHOLD_SECRET_PREFIX"): SecretPrefix {
  if (isSecretPrefix(text)) return text;
  throw invalidArgument(field, "must be a lower-case letter and up to 15 lower-case letters and digits");
}

/** The text of an issued secret. Throws `RangeError` if the payload has not 64 bytes. */
export function formatSecret({ prefix, payload }: SecretFormat): string {
  if (payload.length !== PAYLOAD_SIZE) throw new RangeError("the payload of a secret has 64 bytes");
  const text = secretHead(prefix) + encodeBase62(payload);
  return text + encodeBase62Number(crc32(text), CHECKSUM_DIGITS);
}

/** The inverse of `formatSecret`; undefined for every text that it never prints. That the secret is one of ours is not known yet. */
export function parseSecretFormat(text: string): SecretFormat | undefined {
  if (!SECRET_REGEXP.test(text)) return undefined;
  const covered = text.slice(0, -CHECKSUM_DIGITS);
  if (decodeBase62Number(text.slice(-CHECKSUM_DIGITS)) !== crc32(covered)) return undefined;
  const prefix = covered.slice(0, covered.indexOf("_"));
  const payload = decodeBase62(covered.slice(prefix.length + VERSION.length));
  return payload && isSecretPrefix(prefix) ? { prefix, payload } : undefined;
}

/** What stands before the body: `kh_v1_`. */
export function secretHead(prefix: SecretPrefix): string {
  return prefix + VERSION;
}

function isSecretPrefix(text: string): text is SecretPrefix {
  return PREFIX_REGEXP.test(text);
}
