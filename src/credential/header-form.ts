/** A raw key that every header and proxy carries unchanged: visible ASCII (RFC 9110 §5.5) without commas. */
const PLAIN = /^[!-+\--~]*$/;

const OBSTACLES = [
  [/[\r\n]/, "contains a line break, which no header can carry"],
  [/[^\P{Cc}\r\n\t]/u, "contains control characters, which no header can carry"],
  [/^[ \t]|[ \t]$/, "begins or ends with a space or tab, which is removed from a header"],
  [/,/, "contains a comma, at which a header may be split"],
  [/[^\p{ASCII}]/u, "contains characters outside of ASCII, which clients encode in different ways"],
] as const;

const NONE: readonly string[] = [];

/** Returns for people why a header may not carry a raw key as it is; the raw key is not quoted. */
export function rawKeyWarnings(rawKey: string): readonly string[] {
  if (PLAIN.test(rawKey)) return NONE;
  return OBSTACLES.flatMap(([pattern, problem]) => (pattern.test(rawKey) ? [`raw_key: ${problem}`] : []));
}
