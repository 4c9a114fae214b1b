import { encodeBcryptBase64 } from "./bcrypt-base64.ts";

/** bcrypt 2b. The versions 2a and 2y do the same for text without zero bytes of at most 72 bytes. */
export interface BcryptParameters {
  readonly algorithm: "BCRYPT";
  /** The binary logarithm of the number of rounds. */
  readonly cost: number;
  /** 16 bytes. */
  readonly salt: Uint8Array;
}

/** Argon2 version 19 (RFC 9106). */
export interface Argon2Parameters {
  readonly algorithm: "ARGON2";
  readonly variant: "argon2d" | "argon2i" | "argon2id";
  /** In KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly salt: Uint8Array;
  /** Bytes of the output, of which Argon2 depends. */
  readonly size: number;
}

/** scrypt (RFC 7914). */
export interface ScryptParameters {
  readonly algorithm: "SCRYPT";
  /** The binary logarithm of N. */
  readonly logN: number;
  readonly blockSize: number;
  readonly parallelism: number;
  readonly salt: Uint8Array;
  readonly size: number;
}

/** PBKDF2 with HMAC (RFC 8018). */
export interface Pbkdf2Parameters {
  readonly algorithm: "PBKDF2";
  readonly hash: "sha1" | "sha256" | "sha512";
  readonly iterations: number;
  readonly salt: Uint8Array;
  /** At most the size of the hash: what follows would be computed separately. */
  readonly size: number;
}

/** All that a slow hash depends on besides the raw key. */
export type SlowHashParameters = BcryptParameters | Argon2Parameters | ScryptParameters | Pbkdf2Parameters;

/** A slow hash, taken apart. */
export interface SlowHash<P extends SlowHashParameters = SlowHashParameters> {
  readonly parameters: P;
  readonly output: Uint8Array;
}

/**
 * Returns parameters in the format of PHC without the output, whose size is then the parameter `l`; those of bcrypt in its own format. Equal
 * parameters have equal texts. `parsePhcParameters` parses it.
 */
export function formatParameters(parameters: SlowHashParameters): string {
  switch (parameters.algorithm) {
    case "BCRYPT":
      return `$2b$${String(parameters.cost).padStart(2, "0")}$${encodeBcryptBase64(parameters.salt)}`;
    case "ARGON2": {
      const { variant, memory, passes, parallelism, size, salt } = parameters;
      return `$${variant}$v=19$m=${memory},t=${passes},p=${parallelism},l=${size}$${encodeBase64(salt)}`;
    }
    case "SCRYPT": {
      const { logN, blockSize, parallelism, size, salt } = parameters;
      return `$scrypt$ln=${logN},r=${blockSize},p=${parallelism},l=${size}$${encodeBase64(salt)}`;
    }
    case "PBKDF2": {
      const { hash, iterations, size, salt } = parameters;
      return `$pbkdf2-${hash}$i=${iterations},l=${size}$${encodeBase64(salt)}`;
    }
  }
}

/** Encodes bytes in base64 without padding. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}
