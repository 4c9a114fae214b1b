import { isFields } from "./unusual.ts";

/**
 * Whether `JSON.stringify` writes the value as ProtoJSON writes the `google.protobuf.Value` made of it: nothing that it would
 * leave out, change, or ask for a `toJSON`.
 */
export function isPlainJson(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      if (value === null) return true;
      return Array.isArray(value) ? isPlainArray(value) : isPlainObject(value);
    default:
      return false;
  }
}

/** One of its own making may have a `toJSON` from its class. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isFields(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlainJson);
}

function isPlainArray(items: readonly unknown[]): boolean {
  // Not `every`, which passes over a hole.
  for (const item of items) if (!isPlainJson(item)) return false;
  return Object.getPrototypeOf(items) === Array.prototype;
}
