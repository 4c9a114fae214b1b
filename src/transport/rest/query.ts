import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import { invalidArgument } from "../../errors.ts";
import { shownName } from "../../lib/shown-name.ts";
import {
  type FieldPath,
  findFieldPath,
  findOwner,
  formatFieldPath,
  isWithin,
  leafOf,
  notOfForm,
  setFromJson,
} from "./field-path.ts";
import { valueForm } from "./value-form.ts";

/** Sets fields of the request from a raw query string, such as `page_size=10&filter=a%3Db`. */
export type ReadQuery = (request: ReflectMessage, query: string) => void;

/** One query field, under whichever of its names it was given. */
interface QueryField {
  readonly path: FieldPath;
  readonly texts: string[];
}

/**
 * The reader of a binding's query. `taken` are the fields that the path or body holds; `takesNone` says that the body holds all.
 * The reader throws `INVALID_ARGUMENT` naming the field if it is unknown, taken, has no text form, stands twice without
 * being repeated, or has a bad value: a restriction that was misspelt must not be ignored.
 */
export function queryReader(desc: DescMessage, taken: readonly FieldPath[], takesNone: boolean): ReadQuery {
  return (request, query) => {
    const fields = new Map<string, QueryField>();
    for (const [name, text] of splitQuery(query)) {
      const path = takesNone ? undefined : findFieldPath(desc, name);
      if (path === undefined || taken.some((other) => isWithin(path, other))) throw notAllowed(name, path, takesNone);
      const key = formatFieldPath(path);
      const field = fields.get(key) ?? { path, texts: [] };
      field.texts.push(text);
      fields.set(key, field);
    }
    for (const field of fields.values()) setField(request, field);
  };
}

function notAllowed(name: string, path: FieldPath | undefined, takesNone: boolean): Error {
  if (takesNone)
    return invalidArgument(shownName(name), "is not taken from the query: the body holds the whole request");
  if (path === undefined) return invalidArgument(shownName(name), "is no known query field");
  return invalidArgument(formatFieldPath(path), "is not taken from the query");
}

function setField(request: ReflectMessage, { path, texts }: QueryField): void {
  const leaf = leafOf(path);
  const isList = leaf.fieldKind === "list";
  const isTwice = texts.length > 1 && !isList;
  if (isTwice || findOwner(request, path)?.isSet(leaf)) throw invalidArgument(formatFieldPath(path), "is given twice");
  const values = texts.map((text) => toJson(leaf, path, text));
  for (const value of isList ? [values] : values) setFromJson(request, path, value);
}

function toJson(leaf: DescField, path: FieldPath, text: string) {
  const form = leaf.fieldKind === "map" ? undefined : valueForm(leaf);
  if (form === undefined) throw invalidArgument(formatFieldPath(path), "cannot be written in the query");
  const json = form.fromText(text);
  if (json === undefined) throw notOfForm(path);
  return json;
}

/** The names and values of application/x-www-form-urlencoded, where `+` is a space. */
function* splitQuery(query: string): Generator<[name: string, text: string]> {
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const [name, text] = equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    yield [decodeFormText(name, name), decodeFormText(text, name)];
  }
}

function decodeFormText(text: string, name: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidArgument(shownName(name), "has a malformed percent-encoding");
  }
}
