import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { attempt, type FieldViolation, invalidArgument, invalidArguments, KeyholdError } from "../domain/errors.ts";
import { checkOf } from "./rules.ts";

/** Returns the violations of the rules in the proto. Items of batches are validated separately. */
export function violationsOf<I extends DescMessage>(schema: I, message: MessageShape<I>): readonly FieldViolation[] {
  return checkOf(schema)(message);
}

/**
 * Throws `INVALID_ARGUMENT` with every invalid field of a message. `check` throws it for the fields that break other rules; it is called
 * only if a rule in the proto is broken.
 */
export function requireValid<I extends DescMessage>(
  schema: I,
  message: MessageShape<I> & Message,
  check?: (message: MessageShape<I>) => unknown,
): void {
  const violations = violationsOf(schema, message);
  if (violations.length === 0) return;
  const known = new Set(violations.map(({ field }) => field));
  const checked = attempt(() => check?.(message));
  const others = checked instanceof KeyholdError ? checked.violations : [];
  throw invalidArguments([...violations, ...others.filter(({ field }) => !known.has(field))]);
}

/** Returns what `check` returns for a valid message. Throws `INVALID_ARGUMENT` with every invalid field. */
export function validated<I extends DescMessage, T>(
  schema: I,
  message: MessageShape<I> & Message,
  check: (message: MessageShape<I>) => T,
): T {
  requireValid(schema, message, check);
  return check(message);
}

/** Returns a message field that the rules of the proto require. */
export function requireSet<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw invalidArgument(field, "value is required", "FIELD_REQUIRED");
  return value;
}
