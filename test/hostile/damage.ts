import { type Seeded, seeded } from "../support/seeded.ts";

/** Changes some bytes, deterministically. */
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

/** Chooses one to three changes at positions relative to the length. */
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

/** Splits bytes into at most this many pieces. */
export function split(bytes: Buffer, pieces: number, random: Seeded): Buffer[] {
  const cuts = Array.from({ length: pieces - 1 }, () => random.below(bytes.length + 1)).toSorted((a, b) => a - b);
  const parts = [0, ...cuts].map((from, place) => bytes.subarray(from, cuts[place] ?? bytes.length));
  return parts.filter(({ length }) => length > 0);
}

/** The odds of damage and truncation: one case in this many. */
export interface TransmissionOdds {
  readonly damage: number;
  readonly cut: number;
}

/** The transmission of bytes: they may be damaged, truncated and fragmented. */
export class Transmission {
  readonly #damage: Damage | undefined;
  /** Share of the bytes that is sent, in thousandths; undefined: all. */
  readonly #cut: number | undefined;
  readonly #pieces: number;
  readonly #seed: number;

  constructor(random: Seeded, { damage, cut }: TransmissionOdds) {
    this.#damage = random.below(damage) === 0 ? chooseDamage(random) : undefined;
    this.#cut = random.below(cut) === 0 ? random.below(1_000) : undefined;
    this.#pieces = random.below(3) === 0 ? 2 + random.below(6) : 1;
    this.#seed = random.below(2 ** 31);
  }

  get isDamaged(): boolean {
    return this.#damage !== undefined;
  }

  get isTruncated(): boolean {
    return this.#cut !== undefined;
  }

  /** Descriptions for the report. */
  get forms(): readonly string[] {
    return [
      ...(this.isDamaged ? ["damaged"] : []),
      ...(this.isTruncated ? ["truncated"] : []),
      ...(this.#pieces > 1 ? ["fragmented"] : []),
    ];
  }

  /** Returns how many of the bytes are sent. */
  end(length: number): number {
    return this.#cut === undefined ? length : Math.floor((length * this.#cut) / 1_000);
  }

  damaged(bytes: Buffer): Buffer {
    return this.#damage?.(bytes) ?? bytes;
  }

  /** Returns the pieces in which the bytes are written. */
  split(bytes: Buffer): readonly Buffer[] {
    return split(bytes, this.#pieces, seeded(this.#seed));
  }
}
