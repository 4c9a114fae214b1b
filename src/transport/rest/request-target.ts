/** Where a request goes, still percent-encoded. */
export interface RequestTarget {
  readonly path: string;
  /** Without the question mark; empty where there is none. */
  readonly query: string;
}

/** Origin form or absolute form (RFC 9112 §3.2). */
const REQUEST_TARGET = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/i;

export function splitRequestTarget(url: string): RequestTarget {
  const [, path = "", query = ""] = REQUEST_TARGET.exec(url) ?? [];
  return { path, query };
}
