import { parseFields, requireParameter } from "./fields.ts";
import { invalidPhc } from "./invalid-phc.ts";
import type { SlowHash } from "./parameters.ts";

/** Bytes of an output. A longer one is verified by its beginning. */
const SIZES = { "pbkdf2-sha1": 20, "pbkdf2-sha256": 32, "pbkdf2-sha512": 64 } as const;

/** The format of passlib: the number of iterations without a name. */
const PASSLIB = /^(\$pbkdf2[^$]*\$)([1-9]\d*)\$([^$]+)\$([^$]+)$/;

/**
 * Parses `$pbkdf2-sha256$i=600000$<salt>$<hash>`, in which `l`, the size of the hash, may be stated; and the format of passlib, which has no
 * `i=` and `.` instead of `+`. Throws `INVALID_ARGUMENT`.
 */
export function parsePbkdf2(text: string, id: keyof typeof SIZES): SlowHash {
  const fields = parseFields(fromPasslib(text), ["i", "l"]);
  const { salt, output } = fields;
  const size = fields.parameters.get("l") ?? output.length;
  if (size !== output.length) {
    throw invalidPhc(`l is ${size}, but the hash has ${output.length} bytes: is it truncated?`);
  }
  const values = { i: requireParameter(fields, "i") };
  const verified = output.subarray(0, SIZES[id]);
  return { parameters: { id, values, salt, size: verified.length }, output: verified };
}

/** Returns text in the format of passlib as PHC; other text as it is. */
function fromPasslib(text: string): string {
  const [, head, iterations, salt, output] = PASSLIB.exec(text) ?? [];
  if (head === undefined || salt === undefined || output === undefined) return text;
  if (/\+/.test(salt + output)) {
    throw invalidPhc(`contains +, but no i=: write ${head}i=${iterations}$<salt>$<hash>`);
  }
  return `${head}i=${iterations}$${salt.replaceAll(".", "+")}$${output.replaceAll(".", "+")}`;
}
