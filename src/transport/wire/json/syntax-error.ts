/** A fault beyond so many characters is not located: the text has to be read again for it. */
const MAX_OFFSET = 2 ** 16;

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w)/y;

/**
 * Returns where a text that `JSON.parse` rejects stops being JSON (RFC 8259), as ` at line 2, column 5`; nothing if that is not within the first
 * 64 Ki characters. The errors of V8 have no position in some cases, and quote the text.
 */
export function syntaxErrorPosition(text: string): string {
  const offset = faultOffset(text);
  if (offset === undefined || offset > MAX_OFFSET) return "";
  const lines = text.slice(0, offset).split("\n");
  return ` at line ${lines.length}, column ${[...(lines.at(-1) ?? "")].length + 1}`;
}

function faultOffset(text: string): number | undefined {
  /** The closing bracket of each open object and array. */
  const open: string[] = [];
  let offset = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = offset;
    const found = pattern.exec(text)?.[0] ?? "";
    offset += found.length;
    return found !== "";
  };
  const takeOne = (characters: string): string => {
    take(SPACE);
    const character = text.charAt(offset);
    if (character === "" || !characters.includes(character)) return "";
    offset++;
    return character;
  };
  const takeName = () => {
    take(SPACE);
    return take(STRING) && takeOne(":") !== "";
  };
  /** Consumes a value, or the beginning of one that has members. Returns false at a fault. */
  const takeValue = (): boolean => {
    const bracket = takeOne("{[");
    if (bracket === "") return take(STRING) || take(LITERAL);
    const end = bracket === "{" ? "}" : "]";
    if (takeOne(end) !== "") return true;
    open.push(end);
    return (bracket === "[" || takeName()) && takeValue();
  };
  if (!takeValue()) return offset;
  while (open.length > 0) {
    if (offset > MAX_OFFSET) return undefined;
    const end = open.at(-1) ?? "";
    const separator = takeOne(`,${end}`);
    if (separator === end) open.pop();
    else if (separator === "" || !((end === "]" || takeName()) && takeValue())) return offset;
  }
  take(SPACE);
  return offset < text.length ? offset : undefined;
}
