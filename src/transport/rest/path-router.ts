import type { PathTemplate } from "./path-template.ts";

/** What a path leads to. `segments` are percent-decoded and without the verb. */
export type Lookup<T> =
  | { readonly kind: "found"; readonly value: T; readonly segments: readonly string[] }
  | { readonly kind: "wrong-method"; readonly allowed: readonly string[] }
  | { readonly kind: "unknown" };

interface Bound<T> {
  readonly method: string;
  readonly segments: PathTemplate["segments"];
  /** The same for templates that match the same paths; sorts a literal before a variable in the same place. */
  readonly rank: string;
  readonly value: T;
}

/**
 * Finds the template that a raw path matches: a literal goes before a variable, and a verb that is known at this place before data with a
 * colon. Fastify's router cannot do it: it decodes `%3A` before it looks for a verb, and would take `abc%3Arotate` for the verb of `abc`.
 */
export class PathRouter<T> {
  /** By number of segments and verb, in the order of their ranks. */
  readonly #bound = new Map<string, Bound<T>[]>();

  /** Throws `Error` if the method has a value for a template that matches the same paths. */
  add(method: string, { text, segments, verb }: PathTemplate, value: T): void {
    const key = keyOf(segments, verb);
    const rank = segments.map((literal) => literal ?? "\uffff").join("/");
    const others = this.#bound.get(key) ?? [];
    if (others.some((other) => other.method === method && other.rank === rank)) {
      throw new Error(`two bindings of ${method} ${text}`);
    }
    const all = [...others, { method, segments, rank, value }];
    this.#bound.set(
      key,
      all.sort((a, b) => (a.rank < b.rank ? -1 : 1)),
    );
  }

  /** `path` is the raw path without query, such as `/v1/shelves/a%2Fb:merge`. HEAD goes where GET goes (RFC 9110 §9.3.2). */
  find(method: string, path: string): Lookup<T> {
    const segments = path.slice(1).split("/");
    const last = segments.at(-1) ?? "";
    const colon = last.lastIndexOf(":");
    if (colon !== -1) {
      const found = this.#lookUp(method, segments.with(-1, last.slice(0, colon)), last.slice(colon + 1));
      if (found.kind !== "unknown") return found;
    }
    return this.#lookUp(method, segments);
  }

  #lookUp(method: string, raw: readonly string[], verb?: string): Lookup<T> {
    const segments = raw.map(decodeSegment);
    const matching = this.#bound.get(keyOf(raw, verb))?.filter((bound) => isMatch(bound, segments)) ?? [];
    const found = matching.find((bound) => bound.method === method || (method === "HEAD" && bound.method === "GET"));
    if (found !== undefined) return { kind: "found", value: found.value, segments };
    return matching.length === 0 ? { kind: "unknown" } : { kind: "wrong-method", allowed: allowedBy(matching) };
  }
}

function keyOf({ length }: readonly unknown[], verb: string | undefined): string {
  return verb === undefined ? `${length}` : `${length}:${verb}`;
}

/** An empty segment matches nothing: `/a/` and `/a//b` are unknown. */
function isMatch({ segments: expected }: Bound<unknown>, segments: readonly string[]): boolean {
  return segments.every((segment, index) => segment !== "" && (expected[index] ?? segment) === segment);
}

/** Returns an empty segment, which matches nothing, if the encoding is malformed or not that of UTF-8. */
function decodeSegment(raw: string): string {
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return "";
  }
}

function allowedBy(matching: readonly Bound<unknown>[]): readonly string[] {
  const names = new Set(matching.map(({ method }) => method));
  if (names.has("GET")) names.add("HEAD");
  return [...names].sort();
}
