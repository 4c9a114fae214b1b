import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { textViolationsIn } from "../../../api/text.ts";
import {
  type FieldViolation,
  type InvalidReason,
  invalidArgument,
  invalidArguments,
  MAX_VIOLATIONS,
} from "../../../domain/errors.ts";
import { parseTimestamp } from "../../../filter/timestamp.ts";
import { isJsonObject } from "../../../lib/json.ts";
import { redactName } from "../../../lib/redact-name.ts";
import { findField, isWellKnown, joinJsonPath, notOfForm, unknownField } from "./fields.ts";
import { BODY, MAX_JSON_DEPTH, parseJson, type ValueLimits } from "./parse.ts";

/** The form of JSON over every protocol. */
export const JSON_OPTIONS = {
  useProtoFieldName: true,
  alwaysEmitImplicit: true,
  ignoreUnknownFields: false,
  // A message decoder may count a level of JSON twice.
  recursionLimit: 2 * MAX_JSON_DEPTH,
};

/** Reads a message from its JSON in UTF-8. Throws like `parseJson` and `readMessage`. */
export function readJsonMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  limits: ValueLimits,
): MessageShape<D> {
  return readMessage(desc, parseJson(bytes, limits));
}

/**
 * Returns the message of a JSON value. Throws `INVALID_ARGUMENT` with every field at fault, up to `MAX_VIOLATIONS`, but without values,
 * which may be secrets. Unlike the library, it rejects dates that do not exist, and accepts the names of a field mask in snake_case.
 */
export function readMessage<D extends DescMessage>(desc: D, json: JsonValue): MessageShape<D> {
  if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object", "WRONG_TYPE");
  const reader = new MessageReader();
  const message = reader.message(desc, json, "");
  if (reader.violations.length > 0) throw invalidArguments(reader.violations);
  return message;
}

/** Builds a message in one walk over its JSON, and collects what is wrong with it. */
class MessageReader {
  readonly violations: FieldViolation[] = [];

  message<D extends DescMessage>(desc: D, json: JsonObject, path: string): MessageShape<D> {
    const names = Object.keys(json);
    const leaves = names.filter((name) => isLeaf(findField(desc, name), json[name]));
    const isFlat = leaves.length === names.length;
    const message = this.#read(desc, isFlat ? json : pick(json, leaves));
    return message !== undefined && isFlat ? message : this.#walk(desc, json, path, message);
  }

  /** Reads the fields that are no leaves, and reports what is wrong, also with the leaves unless they have been read into `message`. */
  #walk<D extends DescMessage>(desc: D, json: JsonObject, path: string, message?: MessageShape<D>): MessageShape<D> {
    const nested: Record<string, unknown> = {};
    const seen = new Set<DescField | DescOneof>();
    const before = this.violations.length;
    for (const [name, value] of Object.entries(json)) {
      const field = findField(desc, name);
      if (field === undefined) this.#report(unknownField(path, name, desc));
      else if (!this.#isFirst(field, value, seen, path)) continue;
      else if (!isLeaf(field, value)) this.#nested(field, value, nested, joinJsonPath(path, field.name));
      else if (message === undefined) this.#explain(field, value, joinJsonPath(path, field.name));
    }
    if (message !== undefined) return Object.assign(message, nested);
    if (this.violations.length === before) this.#fail(path === "" ? BODY : path, "is not valid", "INVALID_FORMAT");
    return create(desc);
  }

  /** Reports a field that has occurred under its other name, or beside another field of its oneof. */
  #isFirst(field: DescField, value: JsonValue, seen: Set<DescField | DescOneof>, path: string): boolean {
    const { oneof, name } = field;
    const isExcluded = oneof !== undefined && value !== null && seen.has(oneof);
    if (isExcluded || seen.has(field)) {
      const description = isExcluded
        ? `must not be set together with the other fields of ${oneof.name}`
        : "is set twice, under two names";
      this.#fail(joinJsonPath(path, name), description, "DUPLICATE_FIELD");
      return false;
    }
    seen.add(field);
    if (oneof !== undefined && value !== null) seen.add(oneof);
    return true;
  }

  /** Reads a message field, or a list of messages, into the properties of the message that has it. */
  #nested(field: DescField, json: JsonValue, properties: Record<string, unknown>, path: string): void {
    const { localName, oneof } = field;
    if (field.fieldKind !== "list") {
      const value = this.#value(field, json, path);
      if (oneof === undefined) properties[localName] = value;
      else properties[oneof.localName] = { case: localName, value };
    } else if (Array.isArray(json)) {
      properties[localName] = json.map((item, index) => this.#value(field, item, joinJsonPath(path, index)));
    } else this.#fail(path, "must be an array", "WRONG_TYPE");
  }

  /** Returns the message of one value; undefined if that is invalid. */
  #value(field: DescField, json: JsonValue, path: string): Message | undefined {
    const { message: desc } = field;
    if (desc !== undefined && isWellKnown(desc)) return this.#text(field, desc, json, path);
    if (desc !== undefined && isJsonObject(json)) return this.message(desc, json, path);
    this.#fail(path, "must be an object", "WRONG_TYPE");
    return undefined;
  }

  /** Returns a time or a field mask. */
  #text(field: DescField, desc: DescMessage, json: JsonValue, path: string): Message | undefined {
    const form = desc.typeName === FieldMaskSchema.typeName ? toProtoJsonMask : toTimestamp;
    const text = typeof json === "string" ? form(json) : undefined;
    if (text !== undefined) return fromJson(desc, text);
    this.#report(notOfForm(field, json, path));
    return undefined;
  }

  /** Returns undefined if the library cannot read the JSON. Its errors have no path, and quote values. */
  #read<D extends DescMessage>(desc: D, json: JsonObject): MessageShape<D> | undefined {
    try {
      return fromJson(desc, json, JSON_OPTIONS);
    } catch {
      return undefined;
    }
  }

  /** Reports the values of a leaf that are invalid. */
  #explain(field: DescField, json: JsonValue, path: string): void {
    if (this.#isReadable(field, json)) return;
    if (field.fieldKind === "list") {
      if (!Array.isArray(json)) this.#fail(path, "must be an array", "WRONG_TYPE");
      else
        for (const [index, item] of json.entries()) this.#explainItem(field, [item], item, joinJsonPath(path, index));
    } else if (field.fieldKind === "map") {
      if (!isJsonObject(json)) this.#fail(path, "must be an object", "WRONG_TYPE");
      else for (const [key, entry] of Object.entries(json)) this.#explainEntry(field, key, entry, path);
    } else this.#explainValue(field, json, path);
  }

  #isReadable(field: DescField, json: JsonValue): boolean {
    return this.#read(field.parent, { [field.name]: json }) !== undefined;
  }

  #explainItem(field: DescField, json: JsonValue, item: JsonValue, path: string): void {
    if (!this.#isReadable(field, json)) this.#explainValue(field, item, path);
  }

  #explainEntry(field: DescField, key: string, entry: JsonValue, path: string): void {
    const [badKey] = textViolationsIn(path, key);
    if (badKey !== undefined) this.#report(badKey);
    else this.#explainItem(field, Object.fromEntries([[key, entry]]), entry, joinJsonPath(path, redactName(key)));
  }

  #explainValue(field: DescField, json: JsonValue, path: string): void {
    if (field.message !== undefined && !isWellKnown(field.message)) this.#value(field, json, path);
    else this.#report(textViolationsIn(path, json)[0] ?? notOfForm(field, json, path));
  }

  #fail(field: string, description: string, reason: InvalidReason): void {
    this.#report({ field, description, reason });
  }

  #report(violation: FieldViolation): void {
    if (this.violations.push(violation) === MAX_VIOLATIONS) throw invalidArguments(this.violations);
  }
}

/**
 * Returns whether the library reads a field as a whole. The walk reads messages that have fields, and times and field masks, of which the
 * library accepts others.
 */
function isLeaf(field: DescField | undefined, json: JsonValue | undefined): boolean {
  if (field === undefined) return false;
  const { fieldKind, message } = field;
  if (message === undefined || fieldKind === "map" || json === null) return true;
  return (
    isWellKnown(message) &&
    message.typeName !== TimestampSchema.typeName &&
    message.typeName !== FieldMaskSchema.typeName
  );
}

function pick(json: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, json[name] ?? null]));
}

/** Returns a time in ProtoJSON, which has no lower-case letters; undefined if it does not exist: the library takes 30 February for 2 March. */
function toTimestamp(text: string): string | undefined {
  return /[tz]/.test(text) || parseTimestamp(text) === undefined ? undefined : text;
}

/** Returns a field mask in lowerCamelCase, as ProtoJSON requires; undefined for any other text. */
function toProtoJsonMask(text: string): string | undefined {
  const paths = text === "" ? [] : text.split(",");
  return paths.every(isMaskPath) ? paths.map(protoCamelCase).join(",") : undefined;
}

/** False if a name is empty or would not survive ProtoJSON's conversion to lowerCamelCase and back. */
function isMaskPath(path: string): boolean {
  if (path === "*") return true;
  return /^[\w.]+$/.test(path) && (!path.includes("_") || protoSnakeCase(protoCamelCase(path)) === path);
}
