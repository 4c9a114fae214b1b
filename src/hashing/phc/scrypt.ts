import { parseFields, parseOutput, parseSalt, requireParameter } from "./fields.ts";
import type { ScryptParameters, SlowHash } from "./parameters.ts";

/** Parses `$scrypt$ln=15,r=8,p=1$<salt>$<hash>`. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseScrypt(text: string, field: string): SlowHash<ScryptParameters> {
  const fields = parseFields(text, ["ln", "r", "p"], field);
  const output = parseOutput(fields, field);
  const parameters = {
    algorithm: "SCRYPT",
    logN: requireParameter(fields, "ln", field),
    blockSize: requireParameter(fields, "r", field),
    parallelism: requireParameter(fields, "p", field),
    salt: parseSalt(fields, field),
    size: output.length,
  } as const;
  return { parameters, output };
}
