import { invalidArgument } from "../../domain/errors.ts";
import { parseArgon2 } from "./argon2.ts";
import { parseBcrypt } from "./bcrypt.ts";
import { requireLimits } from "./limits.ts";
import { rejectLookAlike } from "./look-alikes.ts";
import type { SlowHash } from "./parameters.ts";
import { parsePbkdf2 } from "./pbkdf2.ts";
import { parseScrypt } from "./scrypt.ts";

/** A format of slow hashes. `parse` checks no limits; it throws `INVALID_ARGUMENT` naming `field`. */
interface Format {
  readonly matches: RegExp;
  readonly parse: (text: string, field: string) => SlowHash;
}

const FORMATS: readonly Format[] = [
  { matches: /^\$2[aby]\$/, parse: parseBcrypt },
  { matches: /^\$argon2(?:id?|d)\$/, parse: parseArgon2 },
  { matches: /^\$scrypt\$/, parse: parseScrypt },
  { matches: /^\$pbkdf2(?:-sha1|-sha256|-sha512)?\$/, parse: parsePbkdf2 },
];

const ALLOWED =
  "$2a$, $2b$, $2y$, $argon2id$, $argon2i$, $argon2d$, $scrypt$, $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$";

/**
 * Parses a hash in the format of PHC or of modular crypt.
 *
 * @throws `INVALID_ARGUMENT` naming `field`: what is wrong, with the limit, or how a similar format is written as PHC. The text is not quoted.
 */
export function parsePhc(text: string, field: string): SlowHash {
  const hash = parseFormat(text, field);
  if (hash !== undefined) {
    requireLimits(hash.parameters, field);
    return hash;
  }
  rejectLookAlike(text, field);
  throw invalidArgument(field, `has an unsupported format; it must begin with one of: ${ALLOWED}`);
}

/** Parses a hash of any cost. Returns undefined if it is in no supported format; throws `INVALID_ARGUMENT` if it is malformed. */
export function parseFormat(text: string, field: string): SlowHash | undefined {
  return FORMATS.find(({ matches }) => matches.test(text))?.parse(text, field);
}
