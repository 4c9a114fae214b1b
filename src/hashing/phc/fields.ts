import { decodeBase64 } from "../input/text-encoding.ts";
import { invalidPhc } from "./invalid-phc.ts";

/** The parts of a hash in the format of PHC, after its identifier. */
export interface PhcFields {
  readonly version: string | undefined;
  readonly parameters: ReadonlyMap<string, number>;
  readonly salt: Uint8Array;
  readonly output: Uint8Array;
}

/** Splits `$id$v=1$a=1,b=2$salt$output`; the version may be absent. Throws `INVALID_ARGUMENT`. */
export function parseFields(text: string, names: readonly string[]): PhcFields {
  const [, id, ...rest] = text.split("$");
  const version = rest[0]?.startsWith("v=") ? rest.shift()?.slice(2) : undefined;
  const [parameters, salt, output, ...more] = rest;
  if (parameters === undefined || salt === undefined || output === undefined || more.length > 0) {
    const format = `$${id}$${names.map((name) => `${name}=…`).join(",")}$<salt>$<hash>`;
    throw invalidPhc(`must have parameters, salt and hash, as in ${format}: is it truncated?`);
  }
  return {
    version,
    parameters: parseParameters(parameters, names),
    salt: parseBase64(salt, "the salt"),
    output: parseBase64(output, "the hash"),
  };
}

function parseParameters(text: string, names: readonly string[]): ReadonlyMap<string, number> {
  const parameters = new Map<string, number>();
  for (const one of text.split(",")) {
    const [, name, value] = /^([a-z]+)=(0|[1-9]\d{0,9})$/.exec(one) ?? [];
    if (name === undefined || value === undefined) {
      throw invalidPhc(`has a parameter that is not of the form name=number; allowed: ${names.join(", ")}`);
    }
    if (!names.includes(name)) {
      throw invalidPhc(`has the unknown parameter ${name}; allowed: ${names.join(", ")}`, "VALUE_NOT_ALLOWED");
    }
    if (parameters.has(name)) throw invalidPhc(`has the parameter ${name} twice`, "DUPLICATE_FIELD");
    parameters.set(name, Number(value));
  }
  return parameters;
}

/** Returns a parameter. Throws `INVALID_ARGUMENT` if it is absent. */
export function requireParameter({ parameters }: PhcFields, name: string): number {
  const value = parameters.get(name);
  if (value !== undefined) return value;
  throw invalidPhc(`requires the parameter ${name}`, "FIELD_REQUIRED");
}

/** Decodes unpadded canonical base64, as in the PHC string format. */
function parseBase64(text: string, what: string): Uint8Array {
  if (text === "") throw invalidPhc(`${what} is empty`);
  if (/=$/.test(text)) throw invalidPhc(`${what} has padding: remove the = at its end`);
  if (/[-_]/.test(text)) {
    throw invalidPhc(`${what} has base64url characters (- or _): use base64, with + and /`);
  }
  if (text.includes(".")) {
    throw invalidPhc(`${what} has characters that are not base64, such as ".": use base64, with + and /`);
  }
  if (!/^[\w+/]+$/.test(text)) throw invalidPhc(`${what} is not base64`);
  const bytes = text.length % 4 === 1 ? undefined : decodeBase64(text);
  if (bytes === undefined) throw invalidPhc(`${what} is not canonical base64: is it truncated?`);
  return bytes;
}
