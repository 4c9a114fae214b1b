/** Digits in ASCII order, so that encoded texts of equal length sort like the numbers. */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The value of each ASCII digit by code unit; NaN for other characters. */
const DIGIT_VALUES: readonly number[] = Array.from({ length: 0x80 }, (_, unit) =>
  digitValue(String.fromCharCode(unit)),
);

const BLOCK_BYTES = 8;
/** 62^11 > 2^64 > 62^10. */
const BLOCK_DIGITS = 11;
/** A block splits into halves that are exact in a `number`: 62^6 and 62^5 are below 2^53. */
const HIGH_DIGITS = 6;
const LOW_DIGITS = BLOCK_DIGITS - HIGH_DIGITS;
const LOW_RANGE = 62 ** LOW_DIGITS;
const UINT16_RANGE = 2 ** 16;
const UINT48_RANGE = 2 ** 48;

/** Encodes `value` (a whole number, 0 ≤ value < 62^`width` and 2^53) as exactly `width` base62 digits. Throws `RangeError` if it does not fit. */
export function encodeBase62Number(value: number, width: number): string {
  let digits = "";
  let rest = value;
  for (let i = 0; i < width; i++) {
    digits = ALPHABET.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  if (rest !== 0 || !Number.isSafeInteger(value)) throw new RangeError(`not a base62 number with ${width} digits`);
  return digits;
}

/** Decodes base62 digits. Returns undefined for an invalid digit or a number from 2^53. */
export function decodeBase62Number(digits: string): number | undefined {
  const value = numberAt(digits, 0, digits.length);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * Encodes bytes as base62, in blocks: each 8 bytes, as a big-endian number, become 11 digits. Blocks take linear time and have a fixed
 * length, unlike one big number. Throws `RangeError` if the length is not a multiple of 8.
 */
export function encodeBase62(bytes: Uint8Array): string {
  if (bytes.length % BLOCK_BYTES !== 0) throw new RangeError("the length must be a multiple of 8 bytes");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) text += encodeBlock(view, at);
  return text;
}

/**
 * Decodes a text of `encodeBase62`. Returns undefined if the length is not a multiple of 11, a digit is invalid or a block is 2^64 or more:
 * only canonical text decodes.
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

/** Long division with 16-bit digits, no step above 2^50: a block exceeds an exact `number`, and `bigint` takes ten times as long. */
function encodeBlock(view: DataView, at: number): string {
  const upper = view.getUint32(at) * UINT16_RANGE + view.getUint16(at + 4);
  const lower = (upper % LOW_RANGE) * UINT16_RANGE + view.getUint16(at + 6);
  const high = Math.floor(upper / LOW_RANGE) * UINT16_RANGE + Math.floor(lower / LOW_RANGE);
  return encodeBase62Number(high, HIGH_DIGITS) + encodeBase62Number(lower % LOW_RANGE, LOW_DIGITS);
}

/** The inverse: `high * LOW_RANGE + low`, below 2^51 at each step. Returns false if the digits are not a block. */
function decodeBlock(text: string, from: number, view: DataView, at: number): boolean {
  const high = numberAt(text, from, from + HIGH_DIGITS);
  const low = numberAt(text, from + HIGH_DIGITS, from + BLOCK_DIGITS);
  const highUpper = Math.floor(high / UINT16_RANGE);
  const lower = (high - highUpper * UINT16_RANGE) * LOW_RANGE + low;
  const carry = Math.floor(lower / UINT16_RANGE);
  const upper = highUpper * LOW_RANGE + carry;
  // NaN after an invalid digit.
  if (!(upper < UINT48_RANGE)) return false;
  const first = Math.floor(upper / UINT16_RANGE);
  view.setUint32(at, first);
  view.setUint32(at + 4, (upper - first * UINT16_RANGE) * UINT16_RANGE + (lower - carry * UINT16_RANGE));
  return true;
}

/** Returns the number of a range of digits: inexact from 2^53, NaN if a digit is invalid. */
function numberAt(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 62 + (DIGIT_VALUES[text.charCodeAt(at)] ?? Number.NaN);
  return value;
}

function digitValue(digit: string): number {
  const value = ALPHABET.indexOf(digit);
  return value < 0 ? Number.NaN : value;
}
