import { v7 as uuidv7 } from "uuid";
import type { Random } from "../lib/random.ts";
import { invalidArgument } from "./errors.ts";

/** The text form of RFC 9562 §4, in either case. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns a new identifier of a key or token: UUID version 7 (RFC 9562 §5.7), which sorts by creation time. `now` is in milliseconds. */
export function newId(now: number, random: Random): string {
  return uuidv7({ msecs: now, random: random.bytes(16) });
}

/** Parses a UUID of any version and returns it in lower case. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseKeyId(text: string, field: string): string {
  if (!UUID.test(text)) throw invalidArgument(field, "is not a UUID such as 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10");
  return text.toLowerCase();
}
