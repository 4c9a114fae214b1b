import type { Json } from "./rest.ts";

/** Returns the lines of a log. */
export function linesOf(log: string): Json[] {
  return log.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** Returns the last line of a request. */
export function lastRequest(log: string): Json {
  return linesOf(log).findLast(({ msg }) => msg === "request");
}
