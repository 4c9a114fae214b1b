import type { FieldMask } from "@bufbuild/protobuf/wkt";

const derived = new WeakSet<FieldMask>();

/**
 * Marks a mask that the client did not send: a protocol derived it from the fields that the resource contains, where its form shows more
 * than the message. In JSON, `"scopes": []` is present; in the message, it is not set.
 */
export function markDerivedMask(mask: FieldMask): void {
  derived.add(mask);
}

export function isDerivedMask(mask: FieldMask): boolean {
  return derived.has(mask);
}
