const TOKEN = "[\\w!#$%&'*+.^`|~-]+";

/**
 * Returns a pattern of `Content-Type` with this media type, in UTF-8. Other parameters have no meaning for it (RFC 8259 §11, RFC 9110 §8.3.1) and
 * are ignored.
 */
export function mediaTypePattern(type: string): RegExp {
  const parameter = `(?:charset="?utf-?8"?|(?!charset=)${TOKEN}=(?:${TOKEN}|"[^"]*"))`;
  return new RegExp(`^${type.replace(/[.+]/g, "\\$&")}[ \\t]*(?:;[ \\t]*(?:${parameter}[ \\t]*)?)*$`, "i");
}
