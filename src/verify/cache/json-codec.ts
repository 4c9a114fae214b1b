/** UTF-8 bytes per UTF-16 code unit, at most. */
const MAX_UNIT_SIZE = 3;

/** Encodes a value as JSON in UTF-8 and returns its end; NaN if it may not fit or `start` is NaN. */
export function encodeJson(value: unknown, into: Buffer, start: number): number {
  const text = JSON.stringify(value);
  const fits = start + text.length * MAX_UNIT_SIZE <= into.length;
  return fits ? start + into.write(text, start, "utf8") : Number.NaN;
}
