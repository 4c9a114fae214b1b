import type { Json } from "./rest.ts";

/** Returns the lines of a log. */
export function linesOf(log: string): Json[] {
  return log.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}
