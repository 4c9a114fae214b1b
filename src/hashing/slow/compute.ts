import { argon2Sync, pbkdf2Sync, scryptSync } from "node:crypto";
import { decodeBcryptBase64 } from "../phc/bcrypt-base64.ts";
import type { BcryptParameters, ScryptParameters, SlowHashParameters } from "../phc/parameters.ts";

/** Text of bcrypt before the output: `$2b$12$` and 22 digits of salt. */
const BCRYPT_HEAD = 29;

/** bcrypt hashes no more bytes of a message, and a zero byte ends it. */
const MAX_BCRYPT_MESSAGE = 72;

/**
 * Returns whether a message has a hash of its own. One for which this is false must not match: if it were adopted in place of the raw key, the raw
 * key would not be valid any more.
 */
export function hasOwnHash({ algorithm }: SlowHashParameters, message: Uint8Array): boolean {
  switch (algorithm) {
    case "BCRYPT":
      return message.length <= MAX_BCRYPT_MESSAGE && !message.includes(0);
    case "ARGON2":
      return true;
    case "SCRYPT":
    case "PBKDF2":
      // HMAC pads its key, which the message is, with zero bytes (RFC 2104 §2).
      return message.at(-1) !== 0;
  }
}

/** Returns a slow hash of a message. Blocks its thread for up to seconds. */
export async function computeSlowHash(parameters: SlowHashParameters, message: Uint8Array): Promise<Uint8Array> {
  switch (parameters.algorithm) {
    case "BCRYPT":
      return bcrypt(parameters, message);
    case "ARGON2": {
      const { variant, memory, passes, parallelism, salt, size } = parameters;
      return argon2Sync(variant, { message, nonce: salt, memory, passes, parallelism, tagLength: size });
    }
    case "SCRYPT":
      return scrypt(parameters, message);
    case "PBKDF2":
      return pbkdf2Sync(message, parameters.salt, parameters.iterations, parameters.size, parameters.hash);
  }
}

/** Loads the library when it is first needed: its program for this platform is an optional package, and may be missing. */
async function bcrypt({ cost, salt }: BcryptParameters, message: Uint8Array): Promise<Uint8Array> {
  const { hashSync } = await import("@node-rs/bcrypt");
  return decodeBcryptBase64(hashSync(message, cost, salt).slice(BCRYPT_HEAD));
}

function scrypt({ logN, blockSize, parallelism, salt, size }: ScryptParameters, message: Uint8Array): Uint8Array {
  const N = 2 ** logN;
  // RFC 7914 §6 needs 128 * N * r bytes and a few more.
  const maxmem = 128 * blockSize * (N + parallelism + 2);
  return scryptSync(message, salt, size, { N, r: blockSize, p: parallelism, maxmem });
}
