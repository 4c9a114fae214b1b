import { KeyholdError } from "../../domain/errors.ts";
import type { ParsedRawKeyHash } from "../input/raw-key-hash.ts";
import { invalidPhc } from "../phc/invalid-phc.ts";
import { algorithmOf, formatParameters, SLOW_FORMATS, type SlowHashParameters } from "../phc/parameters.ts";
import { parseStoredParameters } from "../phc/stored-parameters.ts";

type Compute = (parameters: string, message: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>;

/** How to make each algorithm available. Node has all but the first; a Node of a distribution may use an OpenSSL without the others. */
const REMEDIES: Readonly<Record<ReturnType<typeof algorithmOf>, string>> = {
  BCRYPT:
    "install the npm package keyhold with its optional dependencies, which include @node-rs/bcrypt for this platform",
  ARGON2: "use a build of Node.js with OpenSSL 3.2 or later",
  SCRYPT: "use a build of Node.js whose OpenSSL supports scrypt",
  PBKDF2: "use a build of Node.js whose OpenSSL supports this hash algorithm",
};

/**
 * Returns a function that rejects with `INVALID_ARGUMENT` if the server cannot compute a hash. It computes one of
 * the same kind at the lowest cost, and remembers if that succeeds.
 */
export function assertComputable(compute: Compute): (hash: ParsedRawKeyHash) => Promise<void> {
  const succeeded = new Set<string>();
  return async ({ parameters }) => {
    if (parameters === null) return;
    const cheapest = cheapestOf(parseStoredParameters(parameters));
    const text = formatParameters(cheapest);
    if (succeeded.has(text)) return;
    try {
      await compute(text, new Uint8Array(1).fill(1));
    } catch (error) {
      if (error instanceof KeyholdError) throw error;
      const algorithm = algorithmOf(cheapest);
      throw invalidPhc(
        `this server cannot compute HASH_ALGORITHM_${algorithm}: ${REMEDIES[algorithm]}`,
        "VALUE_NOT_ALLOWED",
      );
    }
    succeeded.add(text);
  };
}

const SALT = new Uint8Array(16);
const SIZE = 16;

function cheapestOf({ id }: SlowHashParameters): SlowHashParameters {
  const limits = Object.entries(SLOW_FORMATS[id].parameters);
  return { id, values: Object.fromEntries(limits.map(([name, { min }]) => [name, min])), salt: SALT, size: SIZE };
}
