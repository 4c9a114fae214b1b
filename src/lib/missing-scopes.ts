const NONE: readonly string[] = [];

/** Returns the required scopes that are not granted, each once. If none is missing, nothing is allocated: verification asks per call. */
export function missingScopes(required: readonly string[], granted: readonly string[]): readonly string[] {
  for (const scope of required) {
    if (!granted.includes(scope)) return [...new Set(required.filter((one) => !granted.includes(one)))];
  }
  return NONE;
}
