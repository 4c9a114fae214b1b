import { decodeBcryptBase64, encodeBcryptBase64 } from "./bcrypt-base64.ts";
import { parseFields, requireParameter } from "./fields.ts";
import { invalidPhc } from "./invalid-phc.ts";
import { mistakeInFormat } from "./look-alikes.ts";
import { requireLimits, SLOW_FORMATS, type SlowHash, type SlowHashParameters } from "./parameters.ts";
import { parsePbkdf2 } from "./pbkdf2.ts";

const ALLOWED =
  "$2a$, $2b$, $2y$, $argon2id$, $argon2i$, $argon2d$, $scrypt$, $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$";

/**
 * Parses a hash in the format of PHC or of modular crypt.
 *
 * @throws `INVALID_ARGUMENT`: what is wrong, with the limit, or how a similar format is written as PHC. The text is not quoted.
 */
export function parsePhc(text: string): SlowHash {
  const hash = parseFormat(text);
  if (hash === undefined)
    throw invalidPhc(mistakeInFormat(text) ?? `has an unsupported format; it must begin with one of: ${ALLOWED}`);
  requireLimits(hash.parameters);
  return hash;
}

/** Parses a hash of any cost. Returns undefined if it is in no supported format; throws `INVALID_ARGUMENT` if it is malformed. */
export function parseFormat(text: string): SlowHash | undefined {
  const [, id = ""] = /^\$([^$]+)\$/.exec(text) ?? [];
  if (/^2[aby]$/.test(id)) return parseBcrypt(text);
  // As in passlib.
  if (id === "pbkdf2") return parsePbkdf2(text, "pbkdf2-sha1");
  if (!isFormat(id)) return undefined;
  return id === "pbkdf2-sha1" || id === "pbkdf2-sha256" || id === "pbkdf2-sha512"
    ? parsePbkdf2(text, id)
    : parseInOrder(text, id);
}

function isFormat(id: string): id is SlowHashParameters["id"] {
  return Object.hasOwn(SLOW_FORMATS, id);
}

/** 22 digits of the salt (16 bytes) and 31 of the output (23 bytes). */
const BCRYPT = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;
const BCRYPT_LENGTH = 60;

/** Parses `$2b$12$` and 53 digits; also `2a` and `2y`. Throws `INVALID_ARGUMENT`. */
function parseBcrypt(text: string): SlowHash {
  const [, cost, salt, output] = BCRYPT.exec(text) ?? [];
  if (cost === undefined || salt === undefined || output === undefined) {
    const problem =
      text.length === BCRYPT_LENGTH ? "" : `: it has ${text.length} characters, but should have ${BCRYPT_LENGTH}`;
    throw invalidPhc(`must begin with a prefix such as $2b$12$, followed by 53 characters of ./A-Za-z0-9${problem}`);
  }
  const bytes = decodeBcryptBase64(output);
  if (encodeBcryptBase64(bytes) !== output) {
    throw invalidPhc("is not bcrypt: unused bits at its end are not zero; is it truncated or mistyped?");
  }
  const parameters = {
    id: "2b",
    values: { cost: Number(cost) },
    salt: decodeBcryptBase64(salt),
    size: bytes.length,
  } as const;
  return { parameters, output: bytes };
}

/** Parses `$argon2id$v=19$m=65536,t=3,p=4$<salt>$<hash>`, or `$scrypt$ln=15,r=8,p=1$<salt>$<hash>`. Throws `INVALID_ARGUMENT`. */
function parseInOrder(text: string, id: SlowHashParameters["id"]): SlowHash {
  const { algorithm, parameters } = SLOW_FORMATS[id];
  const names = Object.keys(parameters);
  const fields = parseFields(text, names);
  if (algorithm === "ARGON2" && fields.version !== "19") {
    const version = fields.version ?? "16, the default";
    throw invalidPhc(`the version of Argon2 is ${version}; only v=19 is supported`, "VALUE_NOT_ALLOWED");
  }
  const { salt, output } = fields;
  const values = Object.fromEntries(names.map((name) => [name, requireParameter(fields, name)]));
  return { parameters: { id, values, salt, size: output.length }, output };
}
