import { invalidArgument } from "../../domain/errors.ts";
import { decodeBcryptBase64, encodeBcryptBase64 } from "./bcrypt-base64.ts";
import type { BcryptParameters, SlowHash } from "./parameters.ts";

/** 22 digits of the salt (16 bytes) and 31 of the output (23 bytes). */
const BCRYPT = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/;
const LENGTH = 60;

/** Parses `$2b$12$` and 53 digits; also `2a` and `2y`. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseBcrypt(text: string, field: string): SlowHash<BcryptParameters> {
  const [, cost, salt, output] = BCRYPT.exec(text) ?? [];
  if (cost === undefined || salt === undefined || output === undefined) {
    const problem = text.length === LENGTH ? "" : `: it has ${text.length} characters, but should have ${LENGTH}`;
    throw invalidArgument(field, `is not bcrypt, such as $2b$12$ and 53 digits of ./A-Za-z0-9${problem}`);
  }
  const bytes = decodeBcryptBase64(output);
  if (encodeBcryptBase64(bytes) !== output) {
    throw invalidArgument(field, "is not bcrypt: unused bits at its end are not zero; is it cut off or mistyped?");
  }
  return { parameters: { algorithm: "BCRYPT", cost: Number(cost), salt: decodeBcryptBase64(salt) }, output: bytes };
}
