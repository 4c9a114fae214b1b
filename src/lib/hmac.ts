import { createHmac, hash, type KeyObject } from "node:crypto";

const BLOCK = 64;
const DIGEST = 32;
/** Bytes of a message that are hashed in place: credentials and what else is short. */
const CAPACITY = 512;
/** Of UTF-8 for a code unit, at the most. */
const MAX_UNIT_BYTES = 3;

/**
 * HMAC-SHA-256 (RFC 2104) under one key of up to 64 bytes, as two hashes at one call each. An `Hmac` of Node is a stream and an object
 * outside the heap besides: with it the same takes more than twice as long.
 */
export class HmacKey {
  readonly #secret: KeyObject;
  /** The key under `ipad` and behind it the message, which is wiped when it is hashed. */
  readonly #inner: Buffer;
  /** The key under `opad` and behind it the inner hash. */
  readonly #outer: Buffer;

  constructor(secret: KeyObject) {
    const key = secret.export();
    if (key.length > BLOCK) throw new RangeError("an HMAC key has at most 64 bytes here");
    this.#secret = secret;
    this.#inner = padded(key, 0x36, CAPACITY);
    this.#outer = padded(key, 0x5c, DIGEST);
  }

  /** 32 bytes. Text counts as UTF-8. */
  digest(parts: readonly (string | Uint8Array)[]): Buffer {
    const end = this.#write(parts);
    if (end === null) return this.#digestLong(parts);
    this.#outer.write(hash("sha256", this.#inner.subarray(0, end), "binary"), BLOCK, "binary");
    this.#inner.fill(0, BLOCK, end);
    return Buffer.from(hash("sha256", this.#outer, "binary"), "binary");
  }

  /** Where the message ends; null if there may not be room for it, and nothing is written then. */
  #write(parts: readonly (string | Uint8Array)[]): number | null {
    let room = CAPACITY;
    for (const part of parts) room -= typeof part === "string" ? MAX_UNIT_BYTES * part.length : part.length;
    if (room < 0) return null;
    let end = BLOCK;
    for (const part of parts) {
      if (typeof part === "string") end += this.#inner.write(part, end);
      else {
        this.#inner.set(part, end);
        end += part.length;
      }
    }
    return end;
  }

  #digestLong(parts: readonly (string | Uint8Array)[]): Buffer {
    const hmac = createHmac("sha256", this.#secret);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  }
}

/** A block of the key, each byte changed by `pad`, and room for what is hashed with it. Not from the pool, which others share. */
function padded(key: Uint8Array, pad: number, room: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(BLOCK + room).fill(pad, 0, BLOCK);
  for (const [place, byte] of key.entries()) bytes[place] = byte ^ pad;
  return bytes;
}
