import { invalidArgument } from "../../domain/errors.ts";
import { parseFields, parseOutput, parseSalt, requireParameter } from "./fields.ts";
import type { Argon2Parameters, SlowHash } from "./parameters.ts";

/** Parses `$argon2id$v=19$m=65536,t=3,p=4$<salt>$<hash>`; also argon2i and argon2d. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseArgon2(text: string, field: string): SlowHash<Argon2Parameters> {
  const fields = parseFields(text, ["m", "t", "p"], field);
  if (fields.version !== "19") {
    const version = fields.version ?? "16, the default";
    throw invalidArgument(field, `the version of Argon2 is ${version}; only v=19 can be computed`, "VALUE_NOT_ALLOWED");
  }
  const output = parseOutput(fields, field);
  const parameters = {
    algorithm: "ARGON2",
    variant: variantOf(text),
    memory: requireParameter(fields, "m", field),
    passes: requireParameter(fields, "t", field),
    parallelism: requireParameter(fields, "p", field),
    salt: parseSalt(fields, field),
    size: output.length,
  } as const;
  return { parameters, output };
}

function variantOf(text: string): Argon2Parameters["variant"] {
  if (text.startsWith("$argon2id$")) return "argon2id";
  return text.startsWith("$argon2i$") ? "argon2i" : "argon2d";
}
