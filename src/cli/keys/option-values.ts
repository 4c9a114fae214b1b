import type { DescEnum } from "@bufbuild/protobuf";
import { invalidArgument } from "../../domain/errors.ts";

/**
 * Returns the number of an enum value by its choice on the command line.
 *
 * @example enumOf(RevocationReasonSchema, "REVOCATION_REASON_", "key-compromise") // REVOCATION_REASON_KEY_COMPROMISE
 */
export function enumOf(desc: DescEnum, prefix: string, choice: string): number {
  const name = `${prefix}${choice.toUpperCase().replaceAll("-", "_")}`;
  const value = desc.values.find((one) => one.name === name);
  if (value === undefined) throw new TypeError(`${desc.typeName} has no value ${name}`);
  return value.number;
}

/** Parses the values of an option of the form `name=value`. Throws `INVALID_ARGUMENT` naming `option` on a duplicate name. */
export function pairs(option: string, texts: readonly string[] = []): Record<string, string> {
  const entries = texts.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw invalidArgument(option, "must have the form name=value");
    return [text.slice(0, at), text.slice(at + 1)];
  });
  if (new Set(entries.map(([name]) => name)).size < entries.length)
    throw invalidArgument(option, "has a duplicate name");
  return Object.fromEntries(entries);
}
