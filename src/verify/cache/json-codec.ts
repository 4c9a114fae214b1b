/** The most bytes that UTF-8 takes for one unit of UTF-16. */
const MAX_UNIT_SIZE = 3;

/** Writes a value as JSON in UTF-8. Where it ends; NaN if there may be no room for it, or no place to begin at. */
export function encodeJson(value: unknown, into: Buffer, start: number): number {
  const text = JSON.stringify(value);
  const fits = start + text.length * MAX_UNIT_SIZE <= into.length;
  return fits ? start + into.write(text, start, "utf8") : Number.NaN;
}
