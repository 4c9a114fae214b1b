import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { type FieldViolation, KeyholdError } from "../domain/errors.ts";
import { isSurelyValid } from "./quick-validation.ts";
import { sizeViolations } from "./size.ts";
import { textViolations } from "./text.ts";
import { validator } from "./validator.ts";

/** Told at the most: an answer, and the trailer of a gRPC call, must not grow with the request. */
const MAX_VIOLATIONS = 20;

/**
 * What is wrong with a message by the rules of its proto, and by those for all text. Items of batches are judged one by one.
 * What costs little is looked at first, and bounds what the rest costs.
 */
export function violationsOf<I extends DescMessage>(schema: I, message: MessageShape<I>): FieldViolation[] {
  if (isSurelyValid(schema, message)) return [];
  for (const judge of [sizeViolations, textViolations, ruleViolations]) {
    const violations = judge(schema, message);
    if (violations.length > 0) return violations.slice(0, MAX_VIOLATIONS);
  }
  return [];
}

function ruleViolations(schema: DescMessage, message: Message): FieldViolation[] {
  const result = validator().validate(schema, message);
  if (result.kind === "valid") return [];
  if (result.kind === "error") throw result.error;
  return result.violations.map(({ field, message }) => ({ field: pathToString(field), description: message }));
}

/** Refuses a message that breaks a rule, naming every field at fault. */
export function requireValid<I extends DescMessage>(schema: I, message: MessageShape<I> & Message): void {
  const violations = violationsOf(schema, message);
  if (violations.length > 0) throw violationError(violations);
}

export function violationError(violations: readonly FieldViolation[]): KeyholdError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return new KeyholdError("INVALID_ARGUMENT", message, { violations });
}

/** A message field that the rules of the proto require. */
export function requireSet<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw violationError([{ field, description: "value is required" }]);
  return value;
}
