import { type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";
import { anyText } from "../../../lib/any-text.ts";

type Arbitrary = fc.Arbitrary<unknown>;

/** Plausible strings and arbitrary ones: escapes, controls, lone surrogates. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 80 }),
  fc.constantFrom(
    "",
    "a",
    "__proto__",
    "constructor",
    'a"b',
    "a\\b",
    "\0",
    "\u2028",
    "\ud83d\ude00",
    "\ud83d",
    "toJSON",
  ),
  anyText,
);

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

const SCALARS: Readonly<Record<ScalarType, Arbitrary>> = {
  [ScalarType.STRING]: text,
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
  [ScalarType.DOUBLE]: fc.double(),
  [ScalarType.FLOAT]: fc.float(),
  [ScalarType.BYTES]: fc.uint8Array({ maxLength: 12 }),
};

/** Mostly in range. */
const timestamp = fc.record({
  seconds: fc.oneof(
    { weight: 9, arbitrary: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }) },
    { weight: 1, arbitrary: fc.constantFrom(-62_135_596_801n, 253_402_300_800n, 0n, -1n, undefined) },
  ),
  nanos: fc.oneof(
    fc.constantFrom(0, 1000, 1_000_000, 999_000_000, 999_999_999, undefined),
    fc.integer({ min: -1, max: 1_000_000_000 }),
  ),
});

/** Values that are invalid for some or all fields. */
const junk = fc.constantFrom<unknown>(null, undefined, 1.5, Number.NaN, -0, "x", true, [], {}, ["x"], { x: 1 }, 7n);

/** A plain object for `create`, now and then with an invalid value. */
export function anyInit(desc: DescMessage, depth = 3): Arbitrary {
  if (desc.typeName === "google.protobuf.Timestamp") return timestamp;
  const members = desc.members.filter((member) => depth > 0 || isFlat(member));
  const values = members.map((member) => [member.localName, orJunk(memberValue(member, depth))] as const);
  return fc.record(Object.fromEntries(values), { requiredKeys: [] });
}

function isFlat(member: DescField | DescOneof): boolean {
  return member.kind === "field" && member.message === undefined;
}

function orJunk(arbitrary: Arbitrary): Arbitrary {
  return fc.oneof({ weight: 40, arbitrary }, { weight: 1, arbitrary: junk });
}

function memberValue(member: DescField | DescOneof, depth: number): Arbitrary {
  if (member.kind === "field") return fieldValue(member, depth);
  const cases = member.fields.map((field) =>
    fc.record({ case: fc.constant(field.localName), value: fieldValue(field, depth) }),
  );
  return fc.oneof(fc.constant({ case: undefined }), ...cases);
}

function fieldValue(field: DescField, depth: number): Arbitrary {
  if (field.fieldKind === "list") return fc.array(orJunk(itemValue(field, depth)), { maxLength: 3 });
  if (field.fieldKind === "map") return fc.dictionary(keyOf(field), orJunk(itemValue(field, depth)), { maxKeys: 3 });
  return itemValue(field, depth);
}

function keyOf({ mapKey }: DescField & { fieldKind: "map" }): fc.Arbitrary<string> {
  return mapKey === ScalarType.STRING ? text : int32.map(String);
}

function itemValue(field: DescField, depth: number): Arbitrary {
  if (field.scalar !== undefined) return SCALARS[field.scalar];
  if (field.enum !== undefined) return fc.constantFrom(...field.enum.values.map(({ number }) => number), 99, -1);
  if (field.message === undefined) return junk;
  if (field.message.typeName !== "google.protobuf.Struct") return anyInit(field.message, depth - 1);
  return fc.dictionary(text, fc.oneof(fc.jsonValue({ maxDepth: 2 }), junk, text), { maxKeys: 3 });
}
