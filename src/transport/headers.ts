import { randomUUID } from "node:crypto";

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Several values are joined by ", ". */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** All but the pseudo-headers of HTTP/2. */
export function headersOf(headers: Headers): [name: string, value: string][] {
  const names = Object.keys(headers).filter((name) => !name.startsWith(":"));
  return names.map((name) => [name, headerOf(headers, name) ?? ""]);
}

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/** The caller's own identifier of the request (`X-Request-Id`), if it is a sober one. */
export function requestIdOf(given: unknown): string {
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}
