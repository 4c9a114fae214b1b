import { timingSafeEqual } from "node:crypto";

/** Returns whether two byte strings are equal. The time depends on their lengths only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
