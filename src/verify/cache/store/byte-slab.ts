/** Words of an entry's header: its hash, then lengths and flags. */
const HEADER_WORDS = 2;
const WORD = 4;

/** Second word of a header: 20 bits for the length of the value, 8 for that of the key, two flags. */
const VALUE_LENGTH = 0xfffff;
const KEY_SHIFT = 20;
const KEY_LENGTH = 0xff;
const USED = 1 << 28;
const DEAD = 1 << 29;

export const MAX_KEY_LENGTH = KEY_LENGTH;

/** Returns the size of an entry in words. */
export function wordsFor(key: string, value: Uint8Array): number {
  return HEADER_WORDS + Math.ceil(key.length / WORD) + Math.ceil(value.length / WORD);
}

/** Memory outside the JavaScript heap, filled with consecutive entries. Positions are in words of 4 bytes. */
export class ByteSlab {
  readonly capacity: number;
  readonly #words: Uint32Array;
  readonly #bytes: Buffer;
  /** Position of the next entry. */
  filled = 0;

  /** At most 1 MiB. */
  constructor(bytes: number) {
    this.#bytes = Buffer.alloc(bytes);
    this.#words = new Uint32Array(this.#bytes.buffer, this.#bytes.byteOffset, bytes / WORD);
    this.capacity = this.#words.length;
  }

  hasRoom(words: number): boolean {
    return this.filled + words <= this.capacity;
  }

  /** Returns the position of the new entry. */
  append(hash: number, key: string, value: Uint8Array): number {
    const place = this.filled;
    this.#words[place] = hash;
    this.#words[place + 1] = value.length | (key.length << KEY_SHIFT);
    this.#bytes.write(key, this.#start(place), "latin1");
    this.#bytes.set(value, this.#valueWord(place) * WORD);
    this.filled += this.wordsAt(place);
    return place;
  }

  hashAt(place: number): number {
    return this.#words[place] ?? 0;
  }

  wordsAt(place: number): number {
    const lengths = this.#lengths(place);
    return HEADER_WORDS + Math.ceil(keyLength(lengths) / WORD) + Math.ceil((lengths & VALUE_LENGTH) / WORD);
  }

  hasKey(place: number, key: string): boolean {
    if (keyLength(this.#lengths(place)) !== key.length) return false;
    const start = this.#start(place);
    for (let i = 0; i < key.length; i++) if (this.#bytes[start + i] !== key.charCodeAt(i)) return false;
    return true;
  }

  /** Returns a view of the value, not a copy. */
  valueAt(place: number): Buffer {
    const start = this.#valueWord(place) * WORD;
    return this.#bytes.subarray(start, start + (this.#lengths(place) & VALUE_LENGTH));
  }

  /** Returns 32 bits of the value, in the byte order of the machine. */
  wordAt(place: number, index: number): number {
    return this.#words[this.#valueWord(place) + index] ?? 0;
  }

  isUsed(place: number): boolean {
    return (this.#lengths(place) & USED) !== 0;
  }

  isDead(place: number): boolean {
    return (this.#lengths(place) & DEAD) !== 0;
  }

  markUsed(place: number): void {
    this.#words[place + 1] = this.#lengths(place) | USED;
  }

  markDead(place: number): void {
    this.#words[place + 1] = this.#lengths(place) | DEAD;
  }

  /** Moves an entry down to `filled` and clears its used flag. Returns its new position. */
  keep(place: number): number {
    const [to, words] = [this.filled, this.wordsAt(place)];
    this.#words.copyWithin(to, place, place + words);
    this.#words[to + 1] = this.#lengths(to) & ~USED;
    this.filled += words;
    return to;
  }

  #lengths(place: number): number {
    return this.#words[place + 1] ?? 0;
  }

  #valueWord(place: number): number {
    return place + HEADER_WORDS + Math.ceil(keyLength(this.#lengths(place)) / WORD);
  }

  #start(place: number): number {
    return (place + HEADER_WORDS) * WORD;
  }
}

function keyLength(lengths: number): number {
  return (lengths >>> KEY_SHIFT) & KEY_LENGTH;
}
