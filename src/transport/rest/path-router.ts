import { decodePercent } from "../../lib/form-encoding.ts";
import { nearestName } from "../../lib/nearest-name.ts";

/** Origin form or absolute form (RFC 9112 §3.2). */
const REQUEST_TARGET = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/i;

/** Returns the path and the query, still percent-encoded; the query without the question mark, and empty if there is none. */
export function splitRequestTarget(url: string): { readonly path: string; readonly query: string } {
  const [, path = "", query = ""] = REQUEST_TARGET.exec(url) ?? [];
  return { path, query };
}

type PathTemplate = ReturnType<typeof parsePathTemplate>;

/** At least two segments, the first of which is literal, and an optional verb. */
const TEMPLATE = /^\/(?<path>[\w.-]+(?:\/[^/:]+)+)(?::(?<verb>[A-Za-z]\w*))?$/;
/** `literal`, `{field}` or `{field=literal}`. */
const SEGMENT = /^(?:(?<plain>[\w.-]+)|\{(?<fieldPath>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:=(?<fixed>[\w.-]+))?\})$/;

/**
 * Parses the path of a `google.api.http` annotation, without wildcards: literals as segments, undefined for a variable, and the field of the
 * request for each variable, such as `shelf.name`. Throws `Error` if it is malformed or unsupported.
 */
export function parsePathTemplate(text: string) {
  const { path, verb } = TEMPLATE.exec(text)?.groups ?? {};
  const parts = path?.split("/").map((part) => SEGMENT.exec(part)?.groups);
  const variables = parts?.flatMap((part, segment) =>
    part?.fieldPath ? [{ fieldPath: part.fieldPath, segment }] : [],
  );
  const names = new Set(variables?.map(({ fieldPath }) => fieldPath));
  if (parts === undefined || parts.includes(undefined) || names.size !== variables?.length) {
    throw new Error(`malformed or unsupported path template "${text}"`);
  }
  return { text, segments: parts.map((part) => part?.plain ?? part?.fixed), verb, variables };
}

/** The result of a lookup. `segments` are percent-decoded and without the verb. */
export type Lookup<T> =
  | { readonly kind: "found"; readonly value: T; readonly segments: readonly string[] }
  | { readonly kind: "wrong-method"; readonly allowed: readonly string[] }
  /** `nearest` is the text of the template that the path probably means. */
  | { readonly kind: "unknown"; readonly nearest?: string | undefined };

interface Bound<T> extends Pick<PathTemplate, "text" | "segments" | "verb"> {
  readonly method: string;
  /** Equal for templates that match the same paths; sorts a literal before a variable at the same position. */
  readonly rank: string;
  readonly value: T;
}

/**
 * Finds the template that a raw path matches: a literal wins over a variable, and a known verb over data with a colon. Fastify's router
 * cannot be used: it decodes `%3A` before it searches a verb, and would treat `abc%3Arotate` as the verb of `abc`.
 */
export class PathRouter<T> {
  /** Ordered by rank. */
  readonly #bound: Bound<T>[] = [];

  /** Throws `Error` if the method has a value for a template that matches the same paths. */
  add(method: string, { text, segments, verb }: PathTemplate, value: T): void {
    const rank = `${segments.map((literal) => literal ?? "\uffff").join("/")}:${verb}`;
    if (this.#bound.some((other) => other.method === method && other.rank === rank)) {
      throw new Error(`duplicate HTTP bindings for ${method} ${text}`);
    }
    this.#bound.push({ method, text, segments, verb, rank, value });
    this.#bound.sort((a, b) => (a.rank < b.rank ? -1 : 1));
  }

  /** `path` is the raw path without query, such as `/v1/shelves/a%2Fb:merge`. HEAD is routed like GET (RFC 9110 §9.3.2). */
  find(method: string, path: string): Lookup<T> {
    const segments = path.slice(1).split("/");
    const last = segments.at(-1) ?? "";
    const colon = last.lastIndexOf(":");
    const withVerb =
      colon === -1 ? undefined : this.#lookUp(method, segments.with(-1, last.slice(0, colon)), last.slice(colon + 1));
    const found = withVerb ?? this.#lookUp(method, segments);
    // With a colon in the data of another method, a verb is meant.
    const isMisspelt = withVerb === undefined && found?.kind === "wrong-method" && /:|%3a/i.test(last);
    return found === undefined || isMisspelt ? { kind: "unknown", nearest: this.#nearestTo(path) } : found;
  }

  /** Finds the template without common mistakes: a slash at the end, an encoded colon, a misspelt verb. */
  #nearestTo(path: string): string | undefined {
    const [, resource = "", verb] = /^\/(.*?)(?:(?::|%3a)([a-z]*))?\/?$/i.exec(path) ?? [];
    const segments = resource.split("/").map(decodeSegment);
    const matching = this.#bound.filter((bound) => isMatch(bound, segments));
    if (verb === undefined) return matching.find((bound) => bound.verb === undefined)?.text;
    const nearest = nearestName(verb, new Set(matching.flatMap((bound) => bound.verb ?? [])));
    return matching.find((bound) => bound.verb === nearest)?.text;
  }

  #lookUp(method: string, raw: readonly string[], verb?: string): Lookup<T> | undefined {
    const segments = raw.map(decodeSegment);
    const matching = this.#bound.filter((bound) => bound.verb === verb && isMatch(bound, segments));
    const found = matching.find((bound) => bound.method === method || (method === "HEAD" && bound.method === "GET"));
    if (found !== undefined) return { kind: "found", value: found.value, segments };
    if (matching.length === 0) return undefined;
    const names = new Set(matching.map((bound) => bound.method));
    if (names.has("GET")) names.add("HEAD");
    return { kind: "wrong-method", allowed: [...names].sort() };
  }
}

/** An empty segment matches nothing: `/a/` and `/a//b` are unknown. */
function isMatch({ segments: expected }: Bound<unknown>, segments: readonly string[]): boolean {
  if (segments.length !== expected.length) return false;
  return segments.every((segment, index) => segment !== "" && (expected[index] ?? segment) === segment);
}

/** Returns an empty segment, which matches nothing, if the percent-encoding is malformed or not UTF-8. */
function decodeSegment(raw: string): string {
  return raw.includes("%") ? (decodePercent(raw) ?? "") : raw;
}
