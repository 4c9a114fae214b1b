/** V8 does not say where an unexpected token is. It is found up to this offset: for that, the text is parsed several times. */
const MAX_OFFSET = 2 ** 16;

/**
 * Returns where a text that `JSON.parse` rejects stops being JSON, as ` at line 2, column 5`; nothing if that is unknown. The message of
 * the error itself must not be shown: it quotes the text, which may contain a secret.
 */
export function syntaxErrorPosition(text: string): string {
  const offset = faultOffset(text);
  if (offset === undefined) return "";
  const lines = text.slice(0, offset).split("\n");
  return ` at line ${lines.length}, column ${[...(lines.at(-1) ?? "")].length + 1}`;
}

function faultOffset(text: string): number | undefined {
  const message = parseError(text);
  const [, position] = / JSON at position (\d+) \(line \d+ column \d+\)$/.exec(message) ?? [];
  if (position !== undefined) return Number(position);
  if (message === "Unexpected end of JSON input") return text.length;
  return hasUnexpectedToken(text.slice(0, MAX_OFFSET)) ? tokenOffset(text) : undefined;
}

/** Returns the offset of the unexpected token: the shortest prefix of the text that contains it has the same error. */
function tokenOffset(text: string): number {
  let [without, within] = [0, Math.min(text.length, MAX_OFFSET)];
  while (without + 1 < within) {
    const middle = (without + within) >> 1;
    if (hasUnexpectedToken(text.slice(0, middle))) within = middle;
    else without = middle;
  }
  return without;
}

function hasUnexpectedToken(text: string): boolean {
  return parseError(text).startsWith("Unexpected token ");
}

function parseError(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}
