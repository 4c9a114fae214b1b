/** Digits in ASCII order, so that encoded texts of one length sort as the numbers do. */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** By code unit the value of the digit; what has none here is no digit. */
const DIGIT_VALUES: readonly number[] = Array.from({ length: 0x80 }, (_, unit) =>
  digitValue(String.fromCharCode(unit)),
);

const BLOCK_BYTES = 8;
/** 62^11 > 2^64 > 62^10. */
const BLOCK_DIGITS = 11;
/** Where a block's digits are cut, so that each half is an exact `number`: 62^6 and 62^5 are below 2^53. */
const HIGH_DIGITS = 6;
const LOW_DIGITS = BLOCK_DIGITS - HIGH_DIGITS;
const LOW_RANGE = 62 ** LOW_DIGITS;
const UINT16_RANGE = 2 ** 16;
const UINT48_RANGE = 2 ** 48;

/** `value` (a whole number from 0, below 62^`width` and 2^53) in exactly `width` base62 digits. Throws `RangeError` if it does not fit. */
export function encodeBase62Number(value: number, width: number): string {
  let digits = "";
  let rest = value;
  for (let i = 0; i < width; i++) {
    digits = ALPHABET.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  if (rest !== 0 || !Number.isSafeInteger(value)) throw new RangeError("no number of this many base62 digits");
  return digits;
}

/** The number that base62 digits mean, or undefined if one is no digit or the number is 2^53 or more. */
export function decodeBase62Number(digits: string): number | undefined {
  const value = numberAt(digits, 0, digits.length);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * Bytes in base62 by blocks: each 8 bytes, read as a big-endian number, become 11 digits. Fixed blocks take linear time and
 * give a fixed length, which one big number would not. Throws `RangeError` if the length is no multiple of 8.
 */
export function encodeBase62(bytes: Uint8Array): string {
  if (bytes.length % BLOCK_BYTES !== 0) throw new RangeError("base62 blocks have 8 bytes");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) text += encodeBlock(view, at);
  return text;
}

/**
 * The bytes of a text by `encodeBase62`, or undefined if the length is no multiple of 11, a character is no digit or a
 * block is 2^64 or more: every text that is taken encodes back to itself.
 */
export function decodeBase62(text: string): Uint8Array | undefined {
  if (text.length % BLOCK_DIGITS !== 0) return undefined;
  const blocks = text.length / BLOCK_DIGITS;
  const view = new DataView(new ArrayBuffer(blocks * BLOCK_BYTES));
  for (let i = 0; i < blocks; i++) {
    if (!decodeBlock(text, i * BLOCK_DIGITS, view, i * BLOCK_BYTES)) return undefined;
  }
  return new Uint8Array(view.buffer);
}

/**
 * A block is too large for an exact `number`, and a `bigint` takes ten times as long, so this is division by hand with
 * digits of 16 bits: no step goes beyond 2^50.
 */
function encodeBlock(view: DataView, at: number): string {
  const upper = view.getUint32(at) * UINT16_RANGE + view.getUint16(at + 4);
  const lower = (upper % LOW_RANGE) * UINT16_RANGE + view.getUint16(at + 6);
  const high = Math.floor(upper / LOW_RANGE) * UINT16_RANGE + Math.floor(lower / LOW_RANGE);
  return encodeBase62Number(high, HIGH_DIGITS) + encodeBase62Number(lower % LOW_RANGE, LOW_DIGITS);
}

/** The same backwards: `high * LOW_RANGE + low`, below 2^51 at every step. False if these digits are no block. */
function decodeBlock(text: string, from: number, view: DataView, at: number): boolean {
  const high = numberAt(text, from, from + HIGH_DIGITS);
  const low = numberAt(text, from + HIGH_DIGITS, from + BLOCK_DIGITS);
  const highUpper = Math.floor(high / UINT16_RANGE);
  const lower = (high - highUpper * UINT16_RANGE) * LOW_RANGE + low;
  const carry = Math.floor(lower / UINT16_RANGE);
  const upper = highUpper * LOW_RANGE + carry;
  // A digit that is none made all of these NaN.
  if (!(upper < UINT48_RANGE)) return false;
  const first = Math.floor(upper / UINT16_RANGE);
  view.setUint32(at, first);
  view.setUint32(at + 4, (upper - first * UINT16_RANGE) * UINT16_RANGE + (lower - carry * UINT16_RANGE));
  return true;
}

/** The number that some digits of a text mean, inexact from 2^53 on; NaN if one is no digit. */
function numberAt(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 62 + (DIGIT_VALUES[text.charCodeAt(at)] ?? Number.NaN);
  return value;
}

function digitValue(digit: string): number {
  const value = ALPHABET.indexOf(digit);
  return value < 0 ? Number.NaN : value;
}
