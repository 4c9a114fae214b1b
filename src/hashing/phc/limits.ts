import { invalidPhc } from "./invalid-phc.ts";
import type { SlowHashParameters } from "./parameters.ts";

interface Range {
  readonly min: number;
  readonly max: number;
}

const BCRYPT_COST = { min: 4, max: 12 };

/** In KiB: 1 to 64 MiB. */
const ARGON2_MEMORY = { min: 1024, max: 65_536 };
const ARGON2_PASSES = { min: 1, max: 4 };
const ARGON2_PARALLELISM = { min: 1, max: 4 };

/** N of 1,024 to 32,768: 1 to 32 MiB. */
const SCRYPT_LOG_N = { min: 10, max: 15 };
const SCRYPT_BLOCK_SIZE = { min: 8, max: 8 };
const SCRYPT_PARALLELISM = { min: 1, max: 1 };

const PBKDF2_ITERATIONS = { min: 1_000, max: 600_000 };

/** Bytes. RFC 8018 §4.1 and RFC 9106 §3.1 require 8. */
const SALT = { min: 8, max: 64 };

/** Bytes. Fewer could be guessed. */
const OUTPUT = { min: 16, max: 64 };

/** Throws `INVALID_ARGUMENT` if a hash is too weak to be one, or would take too much time or memory to verify. */
export function requireLimits(parameters: SlowHashParameters): void {
  for (const [name, value, { min, max }] of limitsOf(parameters)) {
    if (value >= min && value <= max) continue;
    const allowed = min === max ? `must be ${min}` : `must be ${min} to ${max}`;
    throw invalidPhc(`${name} is ${value}; it ${allowed}`, "OUT_OF_RANGE");
  }
}

function limitsOf(parameters: SlowHashParameters): readonly (readonly [string, number, Range])[] {
  switch (parameters.algorithm) {
    case "BCRYPT":
      return [["the cost of bcrypt", parameters.cost, BCRYPT_COST]];
    case "ARGON2":
      return [
        ["m (KiB of memory)", parameters.memory, ARGON2_MEMORY],
        ["t (passes)", parameters.passes, ARGON2_PASSES],
        ["p (parallelism)", parameters.parallelism, ARGON2_PARALLELISM],
        ...sizesOf(parameters),
      ];
    case "SCRYPT":
      return [
        ["ln (the binary logarithm of N)", parameters.logN, SCRYPT_LOG_N],
        ["r (block size)", parameters.blockSize, SCRYPT_BLOCK_SIZE],
        ["p (parallelism)", parameters.parallelism, SCRYPT_PARALLELISM],
        ...sizesOf(parameters),
      ];
    case "PBKDF2":
      return [["i (iterations)", parameters.iterations, PBKDF2_ITERATIONS], ...sizesOf(parameters)];
  }
}

function sizesOf({ salt, size }: { salt: Uint8Array; size: number }): readonly (readonly [string, number, Range])[] {
  return [
    ["the number of bytes of the salt", salt.length, SALT],
    ["the number of bytes of the hash", size, OUTPUT],
  ];
}
