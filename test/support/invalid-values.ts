import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Answer, Json } from "./rest.ts";

/** A JSON body with one invalid value, and the path of its field. */
export interface InvalidValue {
  readonly field: string;
  readonly body: Json;
}

const TYPES: readonly Json[] = [true, 1, "some text", ["a"], { a: 1 }];

const isText = (value: Json) => typeof value === "string";
const isObject = (value: Json) => typeof value === "object" && !Array.isArray(value);
const TIMES = ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"];
const NUMBERS = ["", "NaN", "1e1000", 1.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 63, 1e300];

const LARGE_NUMBERS = ["", "NaN", "1e1000", 1.5, "9223372036854775808", 2 ** 63, 1e300];

/** Returns invalid values of the field, or of one entry if it is a list or map. */
function invalidFor(field: DescField): readonly Json[] {
  if (field.scalar === ScalarType.STRING) return TYPES.filter((value) => !isText(value));
  if (field.scalar === ScalarType.BOOL) return [...TYPES.filter((value) => value !== true), "true", "", 0];
  if (field.scalar === ScalarType.INT32) return [...TYPES.filter((value) => value !== 1), ...NUMBERS];
  if (field.scalar === ScalarType.INT64) return [...TYPES.filter((value) => value !== 1), ...LARGE_NUMBERS];
  if (field.enum !== undefined) {
    const [known = ""] = field.enum.values.map(({ name }) => name);
    return [...TYPES.filter((value) => value !== 1), "", known.toLowerCase(), `${known}_2`, 2 ** 31, -(2 ** 40)];
  }
  switch (field.message?.typeName) {
    case "google.protobuf.Timestamp":
      return [...TYPES, ...TIMES];
    case "google.protobuf.FieldMask":
      return TYPES.filter((value) => !isText(value));
    case "google.protobuf.Struct":
      return TYPES.filter((value) => !isObject(value));
    default:
      if (field.message !== undefined) return TYPES.filter((value) => !isObject(value));
      throw new Error(`${field} has a type that this table does not support`);
  }
}

/** Returns all invalid values of all fields of a message and its nested messages. */
export function invalidValues(desc: DescMessage): InvalidValue[] {
  return desc.fields.flatMap((field) =>
    inField(field).map((wrong) => ({ ...wrong, body: { [field.name]: wrong.body } })),
  );
}

function inField(field: DescField): InvalidValue[] {
  const entries = inEntry(field);
  switch (field.fieldKind) {
    case "list":
      return [
        ...TYPES.filter((value) => !Array.isArray(value)).map((body) => ({ field: field.name, body })),
        ...[...entries, { field: "", body: null }].flatMap((entry) => [
          { field: `${field.name}[0]${entry.field}`, body: [entry.body] },
          ...(field.message === undefined
            ? [{ field: `${field.name}[1]`, body: [validEntry(field), entry.body] }]
            : []),
        ]),
      ];
    case "map":
      return [
        ...TYPES.filter((value) => !isObject(value)).map((body) => ({ field: field.name, body })),
        ...[...entries, { field: "", body: null }].map(({ body }) => ({
          field: `${field.name}.team`,
          body: { colour: "red", team: body },
        })),
      ];
    default:
      return entries.map((entry) => ({ field: `${field.name}${entry.field}`, body: entry.body }));
  }
}

/** Returns a valid text or enum value. */
function validEntry({ enum: type }: DescField): Json {
  return type?.values.at(-1)?.name ?? "a";
}

/** Returns the invalid values of one entry. The path of a nested field continues with a dot. */
function inEntry(field: DescField): InvalidValue[] {
  const own = invalidFor(field).map((body) => ({ field: "", body }));
  const { message } = field;
  if (message === undefined || message.typeName.startsWith("google.protobuf.")) return own;
  return [...own, ...invalidValues(message).map(({ field: path, body }) => ({ field: `.${path}`, body }))];
}

/** Returns the paths of the text fields of a message, each with a body that has this text there; in maps as a key and as a value. */
export function textFields(desc: DescMessage, text: string): InvalidValue[] {
  return desc.fields.flatMap((field) => {
    const wrap = (path: string, body: Json): InvalidValue => ({ field: path, body: { [field.name]: body } });
    const isList = field.fieldKind === "list";
    if (field.fieldKind === "map") {
      const key = wrap(field.name, Object.fromEntries([[text, "a"]]));
      return [key, wrap(`${field.name}.team`, { team: text })];
    }
    if (field.scalar === ScalarType.STRING)
      return [wrap(isList ? `${field.name}[0]` : field.name, isList ? [text] : text)];
    if (field.message?.typeName === "google.protobuf.Struct") {
      return [
        wrap(field.name, { [text]: 1 }),
        wrap(`${field.name}.a`, { a: text }),
        wrap(`${field.name}.a[0].b[0]`, { a: [{ b: [text] }] }),
      ];
    }
    if (field.message === undefined || field.message.typeName.startsWith("google.protobuf.")) return [];
    return textFields(field.message, text).map(({ field: path, body }) =>
      isList ? wrap(`${field.name}[0].${path}`, [body]) : wrap(`${field.name}.${path}`, body),
    );
  });
}

/** Normalizes a path: `["team"]` and `.team` are equal. */
export function normalPath(field: string): string {
  return field.replaceAll(/\["([\w-]+)"\]/g, ".$1");
}

/** Returns the fields that a REST error names. */
export function restFields(answer: Answer): string[] {
  const details: Json[] = answer.body?.error?.details ?? [];
  const violations: { field: string }[] = details.flatMap((detail) => detail.field_violations ?? []);
  return violations.map(({ field }) => normalPath(field));
}
