export interface PathTemplate {
  readonly text: string;
  /** Literals; undefined where a variable takes any text. */
  readonly segments: readonly (string | undefined)[];
  readonly verb: string | undefined;
  readonly variables: readonly TemplateVariable[];
}

export interface TemplateVariable {
  /** The request field, such as `shelf.name`. */
  readonly fieldPath: string;
  /** The index of the segment that it takes. */
  readonly segment: number;
}

/** At least two segments, of which the first is literal, and perhaps a verb. */
const TEMPLATE = /^\/(?<path>[\w.-]+(?:\/[^/:]+)+)(?::(?<verb>[A-Za-z]\w*))?$/;
/** `literal`, `{field}` or `{field=literal}`. */
const SEGMENT = /^(?:(?<plain>[\w.-]+)|\{(?<fieldPath>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:=(?<fixed>[\w.-]+))?\})$/;

/**
 * Parses the path of a `google.api.http` annotation: of the syntax of google/api/http.proto the part that our protos use, without wildcards.
 * Throws `Error` on any other text: a template is written by us, and a wrong one is found when the routes are made.
 */
export function parsePathTemplate(text: string): PathTemplate {
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
