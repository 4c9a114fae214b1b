import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";
import { text } from "./arbitrary-init.ts";

type Text = fc.Arbitrary<string>;

const space = fc.constantFrom("", "", "", " ", "\n\t");

function oneOf(...weighted: readonly (readonly [weight: number, arbitrary: Text])[]): Text {
  return fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/** A string in quotes, with some unnecessary escapes. */
function quoted(content: Text): Text {
  return oneOf([4, content.map((plain) => JSON.stringify(plain))], [1, content.map(escaped)]);
}

function escaped(content: string): string {
  const units = content.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `"${units.join("")}"`;
}

function spaced(value: Text): Text {
  return fc.tuple(space, value, space).map((parts) => parts.join(""));
}

const anything = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value));
/** Unusual values, or invalid JSON. */
const odd = fc.constantFrom(
  "null",
  "1",
  "-0",
  "1e999",
  '"1"',
  "0.5",
  "true",
  "[]",
  "{}",
  "[null]",
  '{"a":1,"a":2}',
  "x",
  '"',
);
const integer = fc.constantFrom("0", "-0", "1", "-2147483648", "2147483648", "1.0", "1e3", "50");
const struct = fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 }).map((value) => JSON.stringify(value));

/** JSON similar to that of a message: mostly valid, with both forms of names, some duplicates, and values of every type. */
export function anyJson(desc: DescMessage, depth = 3): Text {
  const known = desc.fields.filter(({ message }) => depth > 0 || message === undefined);
  const members = known.map((field) => fc.tuple(fc.constant(field), member(field, depth)));
  if (members.length === 0) return fc.oneof(fc.constant("{}"), anything);
  const apart = fc.uniqueArray(fc.oneof(...members), { selector: ([field]) => field, maxLength: known.length });
  const repeated = fc.array(fc.oneof(...members), { maxLength: 4 });
  return spaced(
    fc.oneof({ weight: 6, arbitrary: apart }, { weight: 1, arbitrary: repeated }).map((list) => {
      return `{${list.map(([, text]) => text).join(",")}}`;
    }),
  );
}

function member(field: DescField, depth: number): Text {
  const { name, jsonName } = field;
  const names = oneOf(
    [20, fc.constant(JSON.stringify(name))],
    [4, fc.constant(JSON.stringify(jsonName))],
    [1, fc.constant(escaped(name))],
    [1, quoted(fc.oneof(text, fc.constantFrom("unknown", "__proto__", "[a.b]")))],
  );
  const value = oneOf([30, fieldValue(field, depth)], [1, odd], [1, anything]);
  return fc.tuple(spaced(names), spaced(value)).map((parts) => parts.join(":"));
}

function fieldValue(field: DescField, depth: number): Text {
  const item = oneOf([40, itemValue(field, depth)], [1, odd]);
  if (field.fieldKind === "list") return fc.array(item, { maxLength: 3 }).map((items) => `[${items.join(",")}]`);
  if (field.fieldKind !== "map") return item;
  const entry = fc.tuple(quoted(text), item).map((parts) => parts.join(":"));
  return fc.array(entry, { maxLength: 3 }).map((entries) => `{${entries.join(",")}}`);
}

function itemValue({ scalar, enum: enumeration, message }: DescField, depth: number): Text {
  if (scalar === ScalarType.STRING) return quoted(text);
  if (scalar === ScalarType.BOOL) return fc.constantFrom("true", "false");
  if (scalar !== undefined) return integer;
  if (enumeration !== undefined)
    return fc.constantFrom(...enumeration.values.map(({ name }) => `"${name}"`), '"X"', "1");
  if (message?.typeName === "google.protobuf.Timestamp") return fc.constantFrom('"2030-01-02T03:04:05Z"', '"soon"');
  if (message?.typeName === "google.protobuf.FieldMask") return fc.constantFrom('"name,actorId"', '"actor_id"');
  if (message?.typeName === "google.protobuf.Struct") return struct;
  return message === undefined || message.typeName.startsWith("google.") ? anything : anyJson(message, depth - 1);
}

/** The text with a few characters deleted, duplicated or changed. */
export function damaged(json: Text): Text {
  const cut = fc.tuple(
    fc.nat(),
    fc.constantFrom("", '"', "\\", "{", "}", "[", "]", ",", ":", "\0", "\ud83d", "a"),
    fc.nat(2),
  );
  return fc.tuple(json, fc.array(cut, { minLength: 1, maxLength: 3 })).map(([text, cuts]) =>
    cuts.reduce((rest, [at, put, length]) => {
      const index = at % (rest.length + 1);
      return rest.slice(0, index) + put + rest.slice(index + length);
    }, text),
  );
}
