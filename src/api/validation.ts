import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { attempt, invalidArguments, KeyholdError } from "../domain/errors.ts";
import { checkOf } from "./rules.ts";

/**
 * Returns what `parse` returns for a valid message. Throws `INVALID_ARGUMENT` with every invalid field: those that break a rule in the proto, and
 * those for which `parse` throws it.
 */
export function parseValid<I extends DescMessage, T>(
  schema: I,
  message: MessageShape<I> & Message,
  parse: (message: MessageShape<I>) => T,
): T {
  const violations = checkOf(schema)(message);
  if (violations.length === 0) return parse(message);
  const fields = new Set(violations.map(({ field }) => field));
  const parsed = attempt(() => parse(message));
  const others = parsed instanceof KeyholdError ? parsed.violations : [];
  throw invalidArguments([...violations, ...others.filter(({ field }) => !fields.has(field))]);
}
