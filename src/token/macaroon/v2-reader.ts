import { decodeUtf8 } from "../../lib/utf8.ts";
import { MacaroonFormatError } from "./format.ts";

/** Two bytes encode lengths up to 16383, above the size limit of a macaroon. */
const MAX_VARINT_SIZE = 2;

/** Reads the fields of the V2 binary form in order. Every method throws `MacaroonFormatError` naming `what`. */
export class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Consumes the next byte if it is `byte`; returns whether it was. */
  skip(byte: number): boolean {
    const found = this.#bytes[this.#at] === byte;
    if (found) this.#at += 1;
    return found;
  }

  expect(byte: number, what: string): void {
    if (!this.skip(byte)) throw new MacaroonFormatError(`no ${what} at byte ${this.#at}`);
  }

  field(type: number, what: string): Uint8Array {
    this.expect(type, what);
    const length = this.#varint(what);
    const start = this.#at;
    if (length > this.#bytes.length - start) throw new MacaroonFormatError(`${what} is truncated`);
    this.#at = start + length;
    return this.#bytes.subarray(start, this.#at);
  }

  optionalField(type: number, what: string): Uint8Array | undefined {
    return this.#bytes[this.#at] === type ? this.field(type, what) : undefined;
  }

  optionalText(type: number, what: string): string | undefined {
    const data = this.optionalField(type, what);
    if (data === undefined) return undefined;
    const text = decodeUtf8(data);
    if (text === undefined) throw new MacaroonFormatError(`${what} is not UTF-8`);
    return text;
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new MacaroonFormatError("unexpected bytes after the signature");
  }

  #varint(what: string): number {
    let value = 0;
    for (let size = 0; size < MAX_VARINT_SIZE; size += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new MacaroonFormatError(`${what} is truncated`);
      this.#at += 1;
      value |= (byte & 0x7f) << (7 * size);
      if (byte >= 0x80) continue;
      // A trailing zero byte is redundant: the same length has a shorter encoding.
      if (byte === 0 && size > 0) throw new MacaroonFormatError(`length of ${what} is not minimally encoded`);
      return value;
    }
    throw new MacaroonFormatError(`length of ${what} is out of bounds`);
  }
}
