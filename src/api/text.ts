import type { FieldViolation } from "../domain/errors.ts";
import { redactName } from "../lib/redact-name.ts";

/**
 * Returns what makes a value unstorable, in text or in JSON that contains text, names of members included. Text must be well-formed
 * Unicode without NUL: PostgreSQL stores neither, and would silently replace a lone surrogate by U+FFFD. Numbers must be finite:
 * `google.protobuf.Value` can hold others, and the text of a JSON number may overflow.
 */
export function textViolationsIn(path: string, value: unknown): readonly FieldViolation[] {
  if (typeof value === "string") return inText(path, value);
  if (typeof value === "number" && !Number.isFinite(value))
    return [{ field: path, description: NOT_FINITE, reason: "OUT_OF_RANGE" }];
  if (typeof value !== "object" || value === null) return NONE;
  if (Array.isArray(value)) return value.flatMap((item, index) => textViolationsIn(`${path}[${index}]`, item));
  return Object.entries(value).flatMap(([name, item]) => {
    const bad = inText(path, name);
    return bad.length > 0 ? bad : textViolationsIn(`${path}${keyStep(name)}`, item);
  });
}

/** Returns the step of a field path to the entry of a map. */
export function keyStep(name: string): string {
  return `[${JSON.stringify(redactName(name))}]`;
}

const NONE: readonly FieldViolation[] = [];

const NOT_FINITE = "must be a finite number";

const reason = "INVALID_CHARACTER";

function inText(field: string, text: string): readonly FieldViolation[] {
  if (text.includes("\0")) return [{ field, description: "must not contain the character NUL", reason }];
  if (!text.isWellFormed())
    return [{ field, description: "must be well-formed Unicode, without lone surrogates", reason }];
  return NONE;
}
