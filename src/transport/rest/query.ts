import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { checkAll, invalidArgument, invalidArguments } from "../../domain/errors.ts";
import { decodeFormText, splitForm } from "../../lib/form-encoding.ts";
import { suggestion } from "../../lib/nearest-name.ts";
import { redactName } from "../../lib/redact-name.ts";
import { findField, nameIn, notOfForm, valueForm } from "../wire/json/fields.ts";
import type { RestRule } from "./http-rule.ts";

/**
 * Returns a function that adds the fields of a raw query string, such as `page_size=10&filter=a%3Db`, to the JSON of the request. It throws
 * `INVALID_ARGUMENT` naming the field if the field is unknown, bound by the path or body, has no text form, occurs twice without being
 * repeated, or has an invalid value: a misspelt restriction must not be ignored.
 */
export function queryReader(desc: DescMessage, { body, variables }: RestRule) {
  const taken = new Set(variables.map(({ path: [first] }) => first));
  if (body.field !== undefined) taken.add(body.field);
  const queryFields = desc.fields.filter((field) => !taken.has(field) && isWritable(field)).map(({ name }) => name);
  const fieldOf = (name: string): DescField => {
    if (body.kind === "whole") throw notAllowed(redactName(name), "must be set in the body, not in the query");
    const field = findField(desc, name);
    if (field === undefined) {
      const description = `is not a known query parameter${suggestion(name, queryFields)}`;
      throw invalidArgument(redactName(name, queryFields), description, "UNKNOWN_FIELD");
    }
    if (taken.has(field)) throw notAllowed(field.name, "must not be set in the query");
    return field;
  };
  return (json: JsonObject, query: string): JsonObject => {
    const texts = new Map<DescField, string[]>();
    const add = ([name, text]: readonly [name: string, text: string]) => {
      const field = fieldOf(decode(name, name));
      texts.set(field, [...(texts.get(field) ?? []), decode(text, name)]);
    };
    checkAll(...splitForm(query).map((pair) => () => add(pair)));
    const members = [...texts].map((entry) => () => [entry[0].name, toJson(json, ...entry)] as const);
    return { ...json, ...Object.fromEntries(checkAll(...members)) };
  };
}

function notAllowed(field: string, description: string): Error {
  return invalidArgument(field, description, "VALUE_NOT_ALLOWED");
}

function toJson(json: JsonObject, field: DescField, texts: readonly string[]): JsonValue {
  const isList = field.fieldKind === "list";
  if (Object.hasOwn(json, nameIn(json, field)) || (texts.length > 1 && !isList)) {
    throw invalidArgument(field.name, "is set twice", "DUPLICATE_FIELD");
  }
  if (!isWritable(field)) throw notAllowed(field.name, "must not be set in the query");
  const values = texts.map((text) => {
    const value = fromText(field, text);
    if (value === undefined) throw invalidArguments([notOfForm(field, text)]);
    return value;
  });
  return isList ? values : (values[0] ?? null);
}

function isWritable(field: DescField): boolean {
  return field.fieldKind !== "map" && valueForm(field) !== undefined;
}

/** Returns the value of a text; undefined if it is none. `readMessage` checks the values of other types. */
function fromText({ scalar }: DescField, text: string): JsonValue | undefined {
  if (scalar === ScalarType.BOOL) return text === "true" || (text === "false" ? false : undefined);
  // ProtoJSON accepts more notations of a number.
  if (scalar === ScalarType.INT32 || scalar === ScalarType.INT64) return /^-?\d{1,20}$/.test(text) ? text : undefined;
  return text;
}

function decode(text: string, name: string): string {
  const decoded = decodeFormText(text);
  if (decoded === undefined) throw invalidArgument(redactName(name), "has a malformed percent-encoding");
  return decoded;
}
