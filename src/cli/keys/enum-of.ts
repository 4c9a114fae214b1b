import type { DescEnum } from "@bufbuild/protobuf";

/** The number of a value that commander has admitted, as `key-compromise` for REVOCATION_REASON_KEY_COMPROMISE. */
export function enumOf(desc: DescEnum, prefix: string, choice: string): number {
  const name = `${prefix}${choice.toUpperCase().replaceAll("-", "_")}`;
  const value = desc.values.find((one) => one.name === name);
  if (value === undefined) throw new TypeError(`${desc.typeName} has no value ${name}`);
  return value.number;
}
