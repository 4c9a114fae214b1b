/** Returns the required scopes that are not granted, each once. */
export function missingScopes(required: readonly string[], granted: readonly string[]): string[] {
  return required.filter((scope, place) => !granted.includes(scope) && required.indexOf(scope) === place);
}
