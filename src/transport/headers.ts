import { randomUUID } from "node:crypto";

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Several values are joined by ", ". */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Returns all fields except the pseudo-headers of HTTP/2. */
export function headersOf(headers: Headers): [name: string, value: string][] {
  const names = Object.keys(headers).filter((name) => !name.startsWith(":"));
  return names.map((name) => [name, headerOf(headers, name) ?? ""]);
}

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/** Returns the client's request id (`X-Request-Id`) if it is well-formed. */
export function requestIdOf(given: unknown): string {
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}
