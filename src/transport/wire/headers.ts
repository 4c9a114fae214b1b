import { randomUUID } from "node:crypto";

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Several values are joined by ", ". */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

const NONE: readonly string[] = [];

/** Returns the values of a name, in lower case, in a list of names and values in turn. */
export function fieldsOf(list: readonly string[], name: string): readonly string[] {
  return list.filter((_, at) => at % 2 === 1 && list[at - 1]?.toLowerCase() === name);
}

export function valuesOf(headers: Headers, name: string): readonly string[] {
  const value = headers[name];
  if (value === undefined) return NONE;
  return typeof value === "string" ? [value] : value;
}

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/** Returns the client's request id (`X-Request-Id`) if it is well-formed, and otherwise a new one. */
export function requestIdOf(header: unknown): string {
  return typeof header === "string" && REQUEST_ID.test(header) ? header : randomUUID();
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";

/**
 * Returns a pattern of `Content-Type` with this media type, in UTF-8. Other parameters have no meaning for it (RFC 8259 §11, RFC 9110 §8.3.1) and
 * are ignored.
 */
export function mediaTypePattern(type: string): RegExp {
  const parameter = `(?:charset="?utf-?8"?|(?!charset=)${TOKEN}=(?:${TOKEN}|"[^"]*"))`;
  return new RegExp(`^${type.replace(/[.+]/g, "\\$&")}[ \\t]*(?:;[ \\t]*(?:${parameter}[ \\t]*)?)*$`, "i");
}
