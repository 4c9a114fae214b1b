/**
 * Returns where a text that `JSON.parse` rejects stops being JSON, as ` at line 2, column 5`; nothing if V8 does not say. The message of
 * the error itself must not be shown: it quotes the text, which may contain a secret.
 */
export function syntaxErrorPosition(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    const [, line, column] = / JSON at position \d+ \(line (\d+) column (\d+)\)$/.exec(String(error)) ?? [];
    return line === undefined ? "" : ` at line ${line}, column ${column}`;
  }
}
