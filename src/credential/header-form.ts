/** A raw key that every header and proxy carries unchanged: visible ASCII (RFC 9110 §5.5) without commas. */
const PLAIN = /^[!-+\--~]*$/;

const OBSTACLES = [
  [/[\r\n]/, "contains a line break, which is not allowed in a header"],
  [/[^\P{Cc}\r\n\t]/u, "contains control characters, which are not allowed in a header"],
  [/^[ \t]|[ \t]$/, "begins or ends with a space or tab, which HTTP strips from header values"],
  [/,/, "contains a comma, which can cause the header to be split"],
  [/[^\p{ASCII}]/u, "contains non-ASCII characters, which clients encode differently; use visible ASCII"],
] as const;

const NONE: readonly string[] = [];

/** Returns for people why a header may not carry a raw key as it is; the raw key is not quoted. */
export function rawKeyWarnings(rawKey: string): readonly string[] {
  if (PLAIN.test(rawKey)) return NONE;
  return OBSTACLES.flatMap(([pattern, problem]) => (pattern.test(rawKey) ? [`raw_key: ${problem}`] : []));
}
