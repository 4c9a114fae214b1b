import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { attempt, type FieldViolation, invalidArgument, invalidArguments, KeyholdError } from "../domain/errors.ts";
import { checkOf } from "./rules.ts";

/** Returns the violations of the rules in the proto. Items of batches are validated separately. */
export function violationsOf<I extends DescMessage>(schema: I, message: MessageShape<I>): readonly FieldViolation[] {
  return checkOf(schema)(message);
}

/**
 * Returns what `parse` returns for a valid message. Throws `INVALID_ARGUMENT` with every invalid field: those that break a rule in the proto, and
 * those for which `parse` throws it.
 */
export function parseValid<I extends DescMessage, T>(
  schema: I,
  message: MessageShape<I> & Message,
  parse: (message: MessageShape<I>) => T,
): T {
  const violations = violationsOf(schema, message);
  if (violations.length === 0) return parse(message);
  const fields = new Set(violations.map(({ field }) => field));
  const parsed = attempt(() => parse(message));
  const others = parsed instanceof KeyholdError ? parsed.violations : [];
  throw invalidArguments([...violations, ...others.filter(({ field }) => !fields.has(field))]);
}

/** Returns a message field that the rules of the proto require. */
export function requireSet<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw invalidArgument(field, "is required", "FIELD_REQUIRED");
  return value;
}
