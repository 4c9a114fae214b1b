import { type Seeded, seeded } from "../support/seeded.ts";

/** Changes some bytes; always in the same way. */
export type Damage = (bytes: Buffer) => Buffer;

const STRINGS = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  ":",
  "\r\n\r\n",
  "\xff",
  "0",
  "9",
  ",",
  "\t",
  "\x80",
  "chunked",
  "HTTP/1.1",
];

/** One to three changes at places that are shares of the length. */
export function chooseDamage(random: Seeded): Damage {
  const changes = Array.from({ length: 1 + random.below(3) }, () => chooseChange(random));
  return (bytes) => changes.reduce((changed, change) => change(changed), bytes);
}

function chooseChange(random: Seeded): Damage {
  const [place, size, byte, text] = [random.below(1_000), 1 + random.below(8), random.below(256), random.pick(STRINGS)];
  const at = (bytes: Buffer) => Math.floor((bytes.length * place) / 1_000);
  const replaced = (bytes: Buffer, by: Uint8Array, length: number) =>
    Buffer.concat([bytes.subarray(0, at(bytes)), by, bytes.subarray(at(bytes) + length)]);
  switch (random.below(5)) {
    case 0:
      return (bytes) => replaced(bytes, Buffer.of(byte), 1);
    case 1:
      return (bytes) => replaced(bytes, Buffer.of(), size);
    case 2:
      return (bytes) => replaced(bytes, Buffer.from(text, "latin1"), 0);
    case 3:
      return (bytes) => replaced(bytes, Buffer.from(text, "latin1"), text.length);
    default:
      return (bytes) => replaced(bytes, bytes.subarray(at(bytes), at(bytes) + size * 8), 0);
  }
}

/** Cuts bytes into at most this many pieces. */
export function split(bytes: Buffer, pieces: number, random: Seeded): Buffer[] {
  const cuts = Array.from({ length: pieces - 1 }, () => random.below(bytes.length + 1)).toSorted((a, b) => a - b);
  const parts = [0, ...cuts].map((from, place) => bytes.subarray(from, cuts[place] ?? bytes.length));
  return parts.filter(({ length }) => length > 0);
}

/** How often bytes are damaged and cut: in one of so many cases each. */
export interface MishapOdds {
  readonly damage: number;
  readonly cut: number;
}

/** What becomes of bytes that are sent: they may be damaged, be cut, and come in pieces. */
export class Mishap {
  readonly #damage: Damage | undefined;
  /** Share of the bytes that is sent, of 1000; undefined: all. */
  readonly #cut: number | undefined;
  readonly #pieces: number;
  readonly #seed: number;

  constructor(random: Seeded, { damage, cut }: MishapOdds) {
    this.#damage = random.below(damage) === 0 ? chooseDamage(random) : undefined;
    this.#cut = random.below(cut) === 0 ? random.below(1_000) : undefined;
    this.#pieces = random.below(3) === 0 ? 2 + random.below(6) : 1;
    this.#seed = random.below(2 ** 31);
  }

  get isDamaged(): boolean {
    return this.#damage !== undefined;
  }

  get isCut(): boolean {
    return this.#cut !== undefined;
  }

  /** For the report. */
  get forms(): readonly string[] {
    return [
      ...(this.isDamaged ? ["damaged"] : []),
      ...(this.isCut ? ["cut"] : []),
      ...(this.#pieces > 1 ? ["in pieces"] : []),
    ];
  }

  /** How many of so many bytes are sent. */
  end(length: number): number {
    return this.#cut === undefined ? length : Math.floor((length * this.#cut) / 1_000);
  }

  damaged(bytes: Buffer): Buffer {
    return this.#damage?.(bytes) ?? bytes;
  }

  /** The bytes as they are written, one after another. */
  split(bytes: Buffer): readonly Buffer[] {
    return split(bytes, this.#pieces, seeded(this.#seed));
  }
}
