import { randomUUID } from "node:crypto";

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/** The caller's own identifier of the request (`X-Request-Id`), if it is a sober one. */
export function requestIdOf(given: unknown): string {
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}
