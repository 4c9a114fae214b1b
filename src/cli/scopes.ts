import { invalidArgument } from "../domain/errors.ts";
import { parseJson } from "../lib/json.ts";

/** Separators used by other programs. A scope may contain them, so text with one is ambiguous. */
const OTHER_SEPARATOR = /[,;|]/;

/**
 * Returns the scopes of a text: words separated by spaces, or a JSON array of strings. Throws `INVALID_ARGUMENT` without quoting
 * the text, which may be a raw key in the wrong column.
 *
 * @example parseScopes("scopes", "read write"); // ["read", "write"]
 */
export function parseScopes(field: string, text: string): string[] {
  if (text.trimStart().startsWith("[")) return listed(field, parseJson(text));
  const [separator] = OTHER_SEPARATOR.exec(text) ?? [];
  if (separator !== undefined)
    throw invalidArgument(field, `contains "${separator}"; separate scopes with spaces, or use a JSON array`);
  return text.split(/\s+/).filter(Boolean);
}

function listed(field: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw invalidArgument(field, "must be a list of strings, or a space-separated string");
  return value.map((scope, index) => {
    if (typeof scope === "string" && scope !== "") return scope;
    throw invalidArgument(`${field}[${index}]`, "must be a non-empty string");
  });
}
