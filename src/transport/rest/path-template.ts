/** One segment of a path template; the text of a literal is percent-decoded. */
export type TemplateSegment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "single" }
  | { readonly kind: "rest" };

/** A variable takes the segments from `start` up to `end`, or to the end of the path where `end` is undefined. */
export interface TemplateVariable {
  /** The request field, such as `shelf.name`. */
  readonly fieldPath: string;
  readonly start: number;
  readonly end: number | undefined;
}

export interface PathTemplate {
  readonly text: string;
  readonly segments: readonly TemplateSegment[];
  readonly verb: string | undefined;
  readonly variables: readonly TemplateVariable[];
}

const WITH_VERB = /^\/(.*?)(?::([^/:{}*]+))?$/;
const SEGMENT_OR_VARIABLE = /(?:\{([^{}=]+)(?:=([^{}]*))?\}|([^{}/]+))(?:\/|$)/y;
const FIELD_PATH = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/;
/** pchar of RFC 3986 §3.3 without the colon, which begins a verb, and the star. */
const LITERAL = /^(?:[\w.~!$&'()+,;=@-]|%[0-9A-Fa-f]{2})+$/;

/**
 * A path template by the grammar of google/api/http.proto ("Path template syntax"). Throws `Error` on any other text: a
 * template is written by us, and a wrong one is found when the routes are made.
 */
export function parsePathTemplate(text: string): PathTemplate {
  const [, path = "", verb] = WITH_VERB.exec(text) ?? [];
  const segments: TemplateSegment[] = [];
  const variables: TemplateVariable[] = [];
  for (const part of splitTemplate(text, path)) {
    const start = segments.length;
    segments.push(...part.pattern.split("/").map((segment) => parseSegment(text, segment)));
    if (part.fieldPath !== undefined) {
      const end = segments.at(-1)?.kind === "rest" ? undefined : segments.length;
      variables.push({ fieldPath: part.fieldPath, start, end });
    }
  }
  requireSoundness(text, segments, variables);
  return { text, segments, verb, variables };
}

interface TemplatePart {
  readonly fieldPath: string | undefined;
  readonly pattern: string;
}

function splitTemplate(text: string, path: string): readonly TemplatePart[] {
  if (path === "" || path.endsWith("/")) throw malformed(text);
  const parts: TemplatePart[] = [];
  SEGMENT_OR_VARIABLE.lastIndex = 0;
  while (SEGMENT_OR_VARIABLE.lastIndex < path.length) {
    const match = SEGMENT_OR_VARIABLE.exec(path);
    if (match === null) throw malformed(text);
    const [, fieldPath, variablePattern = "*", plain] = match;
    parts.push({ fieldPath, pattern: plain ?? variablePattern });
  }
  return parts;
}

function parseSegment(text: string, segment: string): TemplateSegment {
  if (segment === "*") return { kind: "single" };
  if (segment === "**") return { kind: "rest" };
  if (!LITERAL.test(segment)) throw malformed(text);
  return { kind: "literal", text: decodeURIComponent(segment) };
}

function requireSoundness(
  text: string,
  segments: readonly TemplateSegment[],
  variables: readonly TemplateVariable[],
): void {
  const rest = segments.findIndex(({ kind }) => kind === "rest");
  if (rest !== -1 && rest !== segments.length - 1) throw malformed(text);
  const names = variables.map(({ fieldPath }) => fieldPath);
  if (new Set(names).size !== names.length || !names.every((name) => FIELD_PATH.test(name))) throw malformed(text);
}

function malformed(text: string): Error {
  return new Error(`malformed path template "${text}"`);
}

/**
 * What a variable has taken of the raw segments of a path, percent-decoded: in a variable of one segment wholly, in one of
 * more without `%2F`, so that its separators stay apart from its data (google/api/http.proto). Undefined if the encoding is
 * malformed.
 */
export function readVariable(variable: TemplateVariable, rawSegments: readonly string[]): string | undefined {
  const taken = rawSegments.slice(variable.start, variable.end);
  const isSingle = variable.end === variable.start + 1;
  const decoded = taken.map(isSingle ? decodeSegment : decodeAllButSlash);
  return decoded.includes(undefined) ? undefined : decoded.join("/");
}

/** A percent-decoded segment, or undefined if the encoding is malformed or not that of UTF-8. */
export function decodeSegment(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

function decodeAllButSlash(raw: string): string | undefined {
  const pieces = raw.split(/(%2F)/i).map((piece) => (/^%2F$/i.test(piece) ? piece : decodeSegment(piece)));
  return pieces.includes(undefined) ? undefined : pieces.join("");
}
