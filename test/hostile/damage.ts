import type { Seeded } from "../support/seeded.ts";

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
