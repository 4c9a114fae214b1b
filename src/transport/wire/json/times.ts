import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "../../../domain/errors.ts";
import { parseTimestamp } from "../../../keys/filter/timestamp.ts";
import { isJsonObject } from "../../../lib/json.ts";
import { notOfForm, valueForm, valueIn } from "./fields.ts";
import { joinJsonPath } from "./scan.ts";

type Violations = Generator<FieldViolation, void, undefined>;

/**
 * Returns the violations of times that do not exist (RFC 3339 §5.7). `fromJson` takes 30 February for 2 March, as `Date.parse` does. `json`
 * must be readable.
 */
export function* impossibleTimes(desc: DescMessage, json: JsonValue, path = ""): Violations {
  if (!isJsonObject(json)) return;
  for (const field of desc.fields) {
    const value = field.message === undefined ? null : valueIn(json, field);
    if (value === null) continue;
    const at = joinJsonPath(path, field);
    if (!Array.isArray(value)) yield* inValue(field, value, at);
    else for (const [index, item] of value.entries()) yield* inValue(field, item, joinJsonPath(at, index));
  }
}

function* inValue(field: DescField, value: JsonValue, path: string): Violations {
  if (field.message?.typeName === TimestampSchema.typeName) {
    if (typeof value === "string" && parseTimestamp(value) === undefined) yield notOfForm(field, value, path);
  } else if (field.message !== undefined && valueForm(field) === undefined) {
    yield* impossibleTimes(field.message, value, path);
  }
}
