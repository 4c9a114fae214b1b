/** Returns text as a literal of an AIP-160 expression, in which a star that the text has is no wildcard. `end`: a wildcard after it. */
export function quoted(text: string, end: "" | "*" = ""): string {
  return `"${text.replaceAll(/["\\*]/g, "\\$&")}${end}"`;
}
