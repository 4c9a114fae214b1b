/** Digits in ASCII order, so that encoded texts of one length sort as the numbers do. */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGIT_VALUES = new Map([...ALPHABET].map((digit, value) => [digit, value]));

const BLOCK_BYTES = 8;
/** 62^11 > 2^64 > 62^10. */
const BLOCK_DIGITS = 11;
/** Where a block's digits are cut, so that each half is an exact `number`: 62^6 and 62^5 are below 2^53. */
const HIGH_DIGITS = 6;
const LOW_DIGITS = BLOCK_DIGITS - HIGH_DIGITS;
const LOW_RANGE = 62n ** BigInt(LOW_DIGITS);
const BLOCK_RANGE = 2n ** 64n;

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
  let value = 0;
  for (const digit of digits) {
    const digitValue = DIGIT_VALUES.get(digit);
    if (digitValue === undefined) return undefined;
    value = value * 62 + digitValue;
  }
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
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) text += encodeBlock(view.getBigUint64(at));
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
    const block = decodeBlock(text.slice(i * BLOCK_DIGITS, (i + 1) * BLOCK_DIGITS));
    if (block === undefined) return undefined;
    view.setBigUint64(i * BLOCK_BYTES, block);
  }
  return new Uint8Array(view.buffer);
}

function encodeBlock(block: bigint): string {
  const high = encodeBase62Number(Number(block / LOW_RANGE), HIGH_DIGITS);
  return high + encodeBase62Number(Number(block % LOW_RANGE), LOW_DIGITS);
}

function decodeBlock(digits: string): bigint | undefined {
  const high = decodeBase62Number(digits.slice(0, HIGH_DIGITS));
  const low = decodeBase62Number(digits.slice(HIGH_DIGITS));
  if (high === undefined || low === undefined) return undefined;
  const block = BigInt(high) * LOW_RANGE + BigInt(low);
  return block < BLOCK_RANGE ? block : undefined;
}
