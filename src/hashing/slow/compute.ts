import { argon2Sync, pbkdf2Sync, scryptSync } from "node:crypto";
import { decodeBcryptBase64 } from "../phc/bcrypt-base64.ts";
import { algorithmOf, type SlowHashParameters } from "../phc/parameters.ts";

/** Text of bcrypt before the output: `$2b$12$` and 22 digits of salt. */
const BCRYPT_HEAD = 29;

/** bcrypt hashes no more bytes of a message, and a zero byte ends it. */
const MAX_BCRYPT_MESSAGE = 72;

/**
 * Returns whether a message has a hash of its own. One for which this is false must not match: if it were adopted in place of the raw key, the raw
 * key would not be valid any more.
 */
export function hasOwnHash(parameters: SlowHashParameters, message: Uint8Array): boolean {
  switch (algorithmOf(parameters)) {
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
export async function computeSlowHash(
  { id, values, salt, size }: SlowHashParameters,
  message: Uint8Array,
): Promise<Uint8Array> {
  if (id === "2b") return bcrypt(message, values.cost, salt);
  if (id === "scrypt") return scrypt(message, salt, size, values);
  if (id === "argon2d" || id === "argon2i" || id === "argon2id") {
    const { m: memory = 0, t: passes = 0, p: parallelism = 0 } = values;
    return argon2Sync(id, { message, nonce: salt, memory, passes, parallelism, tagLength: size });
  }
  return pbkdf2Sync(message, salt, values.i ?? 0, size, id.slice("pbkdf2-".length));
}

/** Loads the library when it is first needed: its program for this platform is an optional package, and may be missing. */
async function bcrypt(message: Uint8Array, cost: number | undefined, salt: Uint8Array): Promise<Uint8Array> {
  const { hashSync } = await import("@node-rs/bcrypt");
  return decodeBcryptBase64(hashSync(message, cost, salt).slice(BCRYPT_HEAD));
}

function scrypt(
  message: Uint8Array,
  salt: Uint8Array,
  size: number,
  { ln = 0, r = 0, p = 0 }: SlowHashParameters["values"],
): Uint8Array {
  const N = 2 ** ln;
  // RFC 7914 §6 needs 128 * N * r bytes and a few more.
  return scryptSync(message, salt, size, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}
