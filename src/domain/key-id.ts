import { v7 as uuidv7 } from "uuid";
import type { Random } from "../lib/random.ts";
import { invalidArgument } from "./errors.ts";

/** The text form of RFC 9562 §4, in either case. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A new identifier of a key or a token made at `now` (milliseconds): UUID version 7 (RFC 9562 §5.7), its order that of creation. */
export function newId(now: number, random: Random): string {
  return uuidv7({ msecs: now, random: random.bytes(16) });
}

/** Any UUID, as lower case. */
export function parseKeyId(text: string, field: string): string {
  if (!UUID.test(text)) throw invalidArgument(field, "is not a UUID such as 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10");
  return text.toLowerCase();
}
