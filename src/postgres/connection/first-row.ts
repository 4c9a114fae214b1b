/** Returns the first row of a statement that always has one. */
export function firstRow<R>(rows: readonly R[]): R {
  const [row] = rows;
  if (row === undefined) throw new TypeError("the statement returned no row");
  return row;
}
