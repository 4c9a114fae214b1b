import type { parseTimeout } from "@connectrpc/connect/protocol-connect";
import { invalidArgument } from "../../errors.ts";

/** The milliseconds that a header gives, read by Connect's function for its protocol. Throws `INVALID_ARGUMENT`. */
export function timeoutOf(parse: typeof parseTimeout, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const { timeoutMs, error } = parse(value, Number.MAX_SAFE_INTEGER);
  if (error !== undefined) throw invalidArgument("timeout", "is not well-formed");
  return timeoutMs;
}
