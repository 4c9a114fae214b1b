import { encodeBase64, formatParameters, requireLimits, type SlowHashParameters } from "./parameters.ts";
import { parseFormat } from "./parse.ts";

/** Stored parameters except those of bcrypt: `l` is the size of the output. */
const WITH_SIZE = /^(.*),l=(\d{1,2})(\$[^$]+)$/;

/** The digits of an output of zeros. */
const BCRYPT_OUTPUT = ".".repeat(31);

/**
 * Parses what `formatParameters` returned and was stored. Throws `RangeError` for other text, and `INVALID_ARGUMENT` for parameters that exceed
 * the limits: a change of the database must not make a server compute for minutes.
 */
export function parseStoredParameters(text: string): SlowHashParameters {
  const parameters = parse(text);
  if (parameters === undefined || formatParameters(parameters) !== text)
    throw new RangeError("stored hash parameters are malformed");
  requireLimits(parameters);
  return parameters;
}

/** Parses the parameters as those of a hash, with an output of zeros. */
function parse(text: string): SlowHashParameters | undefined {
  const [, head, size, salt] = WITH_SIZE.exec(text) ?? [];
  const output = size === undefined ? BCRYPT_OUTPUT : encodeBase64(new Uint8Array(Number(size)));
  try {
    return parseFormat(head === undefined ? text + output : `${head}${salt}$${output}`)?.parameters;
  } catch {
    return undefined;
  }
}
