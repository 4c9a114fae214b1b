import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { type FieldViolation, KeyholdError } from "../domain/errors.ts";
import { checkOf } from "./rules.ts";

/** Violations reported at most: a response, and the trailer of a gRPC call, must not grow with the request. */
const MAX_VIOLATIONS = 20;

const KINDS = ["size", "text", "rule"] as const;

/**
 * Returns the violations of a message: those of sizes if there are any, else those of text if there are any, else all. Items of batches
 * are validated separately.
 */
export function violationsOf<I extends DescMessage>(schema: I, message: MessageShape<I>): FieldViolation[] {
  const all = checkOf(schema)(message);
  if (all.length === 0) return [];
  const reported = KINDS.map((wanted) => all.filter(({ kind }) => kind === wanted)).find(({ length }) => length > 0);
  return (reported ?? []).slice(0, MAX_VIOLATIONS).map(({ field, description }) => ({ field, description }));
}

/** Throws `INVALID_ARGUMENT` with every invalid field of a message. */
export function requireValid<I extends DescMessage>(schema: I, message: MessageShape<I> & Message): void {
  const violations = violationsOf(schema, message);
  if (violations.length > 0) throw violationError(violations);
}

export function violationError(violations: readonly FieldViolation[]): KeyholdError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return new KeyholdError("INVALID_ARGUMENT", message, { violations });
}

/** Returns a message field that the rules of the proto require. */
export function requireSet<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw violationError([{ field, description: "value is required" }]);
  return value;
}
