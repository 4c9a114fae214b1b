import { decodeBcryptBase64 } from "./bcrypt-base64.ts";
import { requireLimits } from "./limits.ts";
import {
  type Argon2Parameters,
  formatParameters,
  type Pbkdf2Parameters,
  type SlowHashParameters,
} from "./parameters.ts";

const BCRYPT = /^\$2b\$(\d\d)\$([./A-Za-z0-9]{22})$/;
const ARGON2 = /^\$(argon2(?:id?|d))\$v=19\$m=(\d+),t=(\d+),p=(\d+),l=(\d+)\$([A-Za-z0-9+/]+)$/;
const SCRYPT = /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+),l=(\d+)\$([A-Za-z0-9+/]+)$/;
const PBKDF2 = /^\$pbkdf2-(sha1|sha256|sha512)\$i=(\d+),l=(\d+)\$([A-Za-z0-9+/]+)$/;

/**
 * Parses what `formatParameters` returned and was stored. Throws `RangeError` for other text, and `INVALID_ARGUMENT` for parameters that exceed
 * the limits: a change of the database must not make a server compute for minutes.
 */
export function parseStoredParameters(text: string): SlowHashParameters {
  const parameters = bcrypt(text) ?? argon2(text) ?? scrypt(text) ?? pbkdf2(text);
  if (parameters === undefined || formatParameters(parameters) !== text)
    throw new RangeError("stored hash parameters are malformed");
  requireLimits(parameters, "hash_parameters");
  return parameters;
}

function bcrypt(text: string): SlowHashParameters | undefined {
  const [, cost, salt] = BCRYPT.exec(text) ?? [];
  if (salt === undefined) return undefined;
  return { algorithm: "BCRYPT", cost: Number(cost), salt: decodeBcryptBase64(salt) };
}

function argon2(text: string): SlowHashParameters | undefined {
  const [, variant, m, t, p, size, salt] = ARGON2.exec(text) ?? [];
  if (salt === undefined) return undefined;
  return {
    algorithm: "ARGON2",
    variant: variant as Argon2Parameters["variant"],
    memory: Number(m),
    passes: Number(t),
    parallelism: Number(p),
    salt: Buffer.from(salt, "base64"),
    size: Number(size),
  };
}

function scrypt(text: string): SlowHashParameters | undefined {
  const [, logN, blockSize, parallelism, size, salt] = SCRYPT.exec(text) ?? [];
  if (salt === undefined) return undefined;
  return {
    algorithm: "SCRYPT",
    logN: Number(logN),
    blockSize: Number(blockSize),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, "base64"),
    size: Number(size),
  };
}

function pbkdf2(text: string): SlowHashParameters | undefined {
  const [, hash, iterations, size, salt] = PBKDF2.exec(text) ?? [];
  if (salt === undefined) return undefined;
  return {
    algorithm: "PBKDF2",
    hash: hash as Pbkdf2Parameters["hash"],
    iterations: Number(iterations),
    salt: Buffer.from(salt, "base64"),
    size: Number(size),
  };
}
