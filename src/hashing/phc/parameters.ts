import { encodeBcryptBase64 } from "./bcrypt-base64.ts";
import { invalidPhc } from "./invalid-phc.ts";

/** The limits of a number, and what messages call it. */
interface Limits {
  readonly label: string;
  readonly min: number;
  readonly max: number;
}

/** A format of slow hashes: its numeric parameters by their names in PHC, in their order. */
interface SlowFormat {
  readonly algorithm: "BCRYPT" | "ARGON2" | "SCRYPT" | "PBKDF2";
  readonly parameters: Readonly<Record<string, Limits>>;
}

/** Argon2 version 19 (RFC 9106), with 1 to 64 MiB. */
const ARGON2: SlowFormat = {
  algorithm: "ARGON2",
  parameters: {
    m: { label: "m (KiB of memory)", min: 1024, max: 65_536 },
    t: { label: "t (passes)", min: 1, max: 4 },
    p: { label: "p (parallelism)", min: 1, max: 4 },
  },
};

/** scrypt (RFC 7914), with 1 to 32 MiB. */
const SCRYPT: SlowFormat = {
  algorithm: "SCRYPT",
  parameters: {
    ln: { label: "ln (the binary logarithm of N)", min: 10, max: 15 },
    r: { label: "r (block size)", min: 8, max: 8 },
    p: { label: "p (parallelism)", min: 1, max: 1 },
  },
};

/** PBKDF2 with HMAC (RFC 8018). */
const PBKDF2: SlowFormat = {
  algorithm: "PBKDF2",
  parameters: { i: { label: "i (iterations)", min: 1_000, max: 600_000 } },
};

/** bcrypt 2b. The versions 2a and 2y do the same for text without zero bytes of at most 72 bytes. */
const BCRYPT: SlowFormat = {
  algorithm: "BCRYPT",
  parameters: { cost: { label: "the cost of bcrypt", min: 4, max: 12 } },
};

/** The formats of slow hashes by the identifier with which they begin. */
export const SLOW_FORMATS = {
  "2b": BCRYPT,
  argon2d: ARGON2,
  argon2i: ARGON2,
  argon2id: ARGON2,
  scrypt: SCRYPT,
  "pbkdf2-sha1": PBKDF2,
  "pbkdf2-sha256": PBKDF2,
  "pbkdf2-sha512": PBKDF2,
};

/** Bytes. RFC 8018 §4.1 and RFC 9106 §3.1 require 8. */
const SALT: Limits = { label: "the number of bytes of the salt", min: 8, max: 64 };

/** Bytes. Fewer could be guessed. */
const OUTPUT: Limits = { label: "the number of bytes of the hash", min: 16, max: 64 };

/** All that a slow hash depends on besides the raw key. */
export interface SlowHashParameters {
  readonly id: keyof typeof SLOW_FORMATS;
  /** Each parameter of the format by its name. */
  readonly values: Readonly<Record<string, number>>;
  readonly salt: Uint8Array;
  /** Bytes of the output, on which Argon2 depends. With PBKDF2 at most the size of the hash: what follows would be computed separately. */
  readonly size: number;
}

export interface SlowHash {
  readonly parameters: SlowHashParameters;
  readonly output: Uint8Array;
}

export function algorithmOf({ id }: SlowHashParameters): SlowFormat["algorithm"] {
  return SLOW_FORMATS[id].algorithm;
}

/**
 * Returns parameters in the format of PHC without the output, whose size is then the parameter `l`; those of bcrypt in its own format. Equal
 * parameters have equal texts. `parseStoredParameters` parses it.
 */
export function formatParameters({ id, values, salt, size }: SlowHashParameters): string {
  if (id === "2b") return `$2b$${String(values.cost).padStart(2, "0")}$${encodeBcryptBase64(salt)}`;
  const { algorithm, parameters } = SLOW_FORMATS[id];
  const numbers = [...Object.keys(parameters).map((name) => `${name}=${values[name]}`), `l=${size}`].join(",");
  return `$${id}$${algorithm === "ARGON2" ? "v=19$" : ""}${numbers}$${encodeBase64(salt)}`;
}

/** Encodes bytes in base64 without padding. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}

/** Throws `INVALID_ARGUMENT` if a hash is too weak to be one, or would take too much time or memory to verify. */
export function requireLimits({ id, values, salt, size }: SlowHashParameters): void {
  const { parameters } = SLOW_FORMATS[id];
  for (const [name, limits] of Object.entries(parameters)) requireWithin(limits, values[name] ?? 0);
  requireWithin(SALT, salt.length);
  requireWithin(OUTPUT, size);
}

function requireWithin({ label, min, max }: Limits, value: number): void {
  if (value >= min && value <= max) return;
  const allowed = min === max ? `must be ${min}` : `must be ${min} to ${max}`;
  throw invalidPhc(`${label} is ${value}; it ${allowed}`, "OUT_OF_RANGE");
}
