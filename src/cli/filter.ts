/** Returns the condition that a field has this value, if any. Nothing in the value has a meaning in the filter language. */
export function equalTo(field: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`${field}="${value.replace(/["\\*]/g, "\\$&")}"`];
}

/** Returns a filter that also requires these conditions. */
export function allOf(filter: string, conditions: readonly string[]): string {
  // Without parentheses if it is alone, so that positions in errors are those of the option.
  if (conditions.length === 0 || filter.trim() === "") return filter + conditions.join(" AND ");
  return [`(${filter})`, ...conditions].join(" AND ");
}
