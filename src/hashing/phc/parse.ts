import { decodeBcryptBase64, encodeBcryptBase64 } from "./bcrypt-base64.ts";
import { parseFields, requireParameter } from "./fields.ts";
import { invalidPhc } from "./invalid-phc.ts";
import { requireLimits } from "./limits.ts";
import { rejectLookAlike } from "./look-alikes.ts";
import type { Argon2Parameters, BcryptParameters, ScryptParameters, SlowHash } from "./parameters.ts";
import { parsePbkdf2 } from "./pbkdf2.ts";

/** A format of slow hashes. `parse` checks no limits; it throws `INVALID_ARGUMENT`. */
interface Format {
  readonly matches: RegExp;
  readonly parse: (text: string) => SlowHash;
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
 * @throws `INVALID_ARGUMENT`: what is wrong, with the limit, or how a similar format is written as PHC. The text is not quoted.
 */
export function parsePhc(text: string): SlowHash {
  const hash = parseFormat(text);
  if (hash !== undefined) {
    requireLimits(hash.parameters);
    return hash;
  }
  rejectLookAlike(text);
  throw invalidPhc(`has an unsupported format; it must begin with one of: ${ALLOWED}`);
}

/** Parses a hash of any cost. Returns undefined if it is in no supported format; throws `INVALID_ARGUMENT` if it is malformed. */
export function parseFormat(text: string): SlowHash | undefined {
  return FORMATS.find(({ matches }) => matches.test(text))?.parse(text);
}

/** 22 digits of the salt (16 bytes) and 31 of the output (23 bytes). */
const BCRYPT = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;
const BCRYPT_LENGTH = 60;

/** Parses `$2b$12$` and 53 digits; also `2a` and `2y`. Throws `INVALID_ARGUMENT`. */
function parseBcrypt(text: string): SlowHash<BcryptParameters> {
  const [, cost, salt, output] = BCRYPT.exec(text) ?? [];
  if (cost === undefined || salt === undefined || output === undefined) {
    const problem =
      text.length === BCRYPT_LENGTH ? "" : `: it has ${text.length} characters, but should have ${BCRYPT_LENGTH}`;
    throw invalidPhc(`must be like $2b$12$ and 53 characters of ./A-Za-z0-9${problem}`);
  }
  const bytes = decodeBcryptBase64(output);
  if (encodeBcryptBase64(bytes) !== output) {
    throw invalidPhc("is not bcrypt: unused bits at its end are not zero; is it truncated or mistyped?");
  }
  return { parameters: { algorithm: "BCRYPT", cost: Number(cost), salt: decodeBcryptBase64(salt) }, output: bytes };
}

/** Parses `$argon2id$v=19$m=65536,t=3,p=4$<salt>$<hash>`; also argon2i and argon2d. Throws `INVALID_ARGUMENT`. */
function parseArgon2(text: string): SlowHash<Argon2Parameters> {
  const fields = parseFields(text, ["m", "t", "p"]);
  if (fields.version !== "19") {
    const version = fields.version ?? "16, the default";
    throw invalidPhc(`the version of Argon2 is ${version}; only v=19 is supported`, "VALUE_NOT_ALLOWED");
  }
  const parameters = {
    algorithm: "ARGON2",
    variant: variantOf(text),
    memory: requireParameter(fields, "m"),
    passes: requireParameter(fields, "t"),
    parallelism: requireParameter(fields, "p"),
    salt: fields.salt,
    size: fields.output.length,
  } as const;
  return { parameters, output: fields.output };
}

function variantOf(text: string): Argon2Parameters["variant"] {
  if (text.startsWith("$argon2id$")) return "argon2id";
  return text.startsWith("$argon2i$") ? "argon2i" : "argon2d";
}

/** Parses `$scrypt$ln=15,r=8,p=1$<salt>$<hash>`. Throws `INVALID_ARGUMENT`. */
function parseScrypt(text: string): SlowHash<ScryptParameters> {
  const fields = parseFields(text, ["ln", "r", "p"]);
  const parameters = {
    algorithm: "SCRYPT",
    logN: requireParameter(fields, "ln"),
    blockSize: requireParameter(fields, "r"),
    parallelism: requireParameter(fields, "p"),
    salt: fields.salt,
    size: fields.output.length,
  } as const;
  return { parameters, output: fields.output };
}
