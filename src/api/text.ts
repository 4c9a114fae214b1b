import { type DescField, type DescMessage, isMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "../domain/errors.ts";
import { redactName } from "../lib/redact-name.ts";

/**
 * Every text of a request is well-formed Unicode without NUL: PostgreSQL stores neither, and a lone surrogate would be changed
 * in silence to U+FFFD. The protos cannot say it once for all fields, so it is said here. Messages in lists are left out:
 * they are items of batches, which are judged one by one.
 */
export function textViolations(schema: DescMessage, message: Message): FieldViolation[] {
  return schema.fields.flatMap((field) => inField(field, Reflect.get(message, field.localName)));
}

function inField(field: DescField, value: unknown): FieldViolation[] {
  if (value === undefined) return [];
  if (field.fieldKind === "message") return inMessage(field.message, field.name, value);
  const holdsText =
    (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) ||
    (field.fieldKind === "list" && field.listKind === "scalar" && field.scalar === ScalarType.STRING) ||
    field.fieldKind === "map";
  return holdsText ? textViolationsIn(field.name, value) : [];
}

function inMessage(schema: DescMessage, name: string, value: unknown): FieldViolation[] {
  if (schema.typeName === StructSchema.typeName) return textViolationsIn(name, value);
  if (!isMessage(value)) return [];
  return textViolations(schema, value).map((violation) => ({ ...violation, field: `${name}.${violation.field}` }));
}

/**
 * The same of text, or of JSON that has text in it; of an object the names too. Its numbers are finite: JSON has no others, though
 * its text may have one that becomes infinite when it is read, and `google.protobuf.Value` may hold one.
 */
export function textViolationsIn(path: string, value: unknown): FieldViolation[] {
  if (typeof value === "string") return inText(path, value);
  if (typeof value === "number" && !Number.isFinite(value)) return [{ field: path, description: NOT_FINITE }];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, index) => textViolationsIn(`${path}[${index}]`, item));
  return Object.entries(value).flatMap(([name, item]) => {
    const bad = inText(path, name);
    return bad.length > 0 ? bad : textViolationsIn(`${path}[${JSON.stringify(redactName(name))}]`, item);
  });
}

const NOT_FINITE = "must be a number that JSON can write: finite, and at most 1.8e308";

function inText(field: string, text: string): FieldViolation[] {
  if (text.includes("\0")) return [{ field, description: "must not contain the character NUL" }];
  if (!text.isWellFormed()) return [{ field, description: "must be well-formed Unicode, without lone surrogates" }];
  return [];
}
