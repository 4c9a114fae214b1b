import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { notOfForm, valueIn } from "./fields.ts";
import { joinJsonPath } from "./scan.ts";

const fieldsWithTimes = new WeakMap<DescMessage, readonly DescField[]>();

/** Returns the fields of a message that are times, or messages that have such fields. */
function timesOf(desc: DescMessage): readonly DescField[] {
  const known = fieldsWithTimes.get(desc);
  if (known !== undefined) return known;
  // For a message that contains itself.
  fieldsWithTimes.set(desc, []);
  const found = desc.fields.filter(
    ({ message }) => message !== undefined && (isTime(message) || timesOf(message).length > 0),
  );
  fieldsWithTimes.set(desc, found);
  return found;
}

function isTime({ typeName }: DescMessage): boolean {
  return typeName === TimestampSchema.typeName;
}

/**
 * Returns the violations of times on a day that their month does not have. `fromJson` takes 30 February for 2 March, as `Date.parse` does;
 * RFC 3339 §5.7 forbids it. `json` must be readable.
 */
export function* missingDays(
  desc: DescMessage,
  json: JsonValue,
  path = "",
): Generator<FieldViolation, void, undefined> {
  if (!isJsonObject(json)) return;
  for (const field of timesOf(desc)) {
    const { name, message, fieldKind } = field;
    const value = valueIn(json, field);
    if (value === null || message === undefined) continue;
    const at = joinJsonPath(path, name);
    const items = fieldKind === "list" && Array.isArray(value) ? [...value.entries()] : [[undefined, value] as const];
    for (const [index, item] of items) {
      const itemPath = index === undefined ? at : joinJsonPath(at, index);
      if (!isTime(message)) yield* missingDays(message, item, itemPath);
      else if (typeof item === "string" && !isInMonth(item)) yield notOfForm(field, item, itemPath);
    }
  }
}

function isInMonth(time: string): boolean {
  const day = time.slice(0, 10);
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}
