const SHOWN = 6;

/**
 * A name that a caller gave, for an error that says it is unknown. A long one with digits may be a secret in the wrong place,
 * and a very long one helps nobody: of these only the beginning is shown.
 */
export function redactName(name: string): string {
  const isPlain = name.length <= 16 || (name.length <= 64 && !/\d/.test(name));
  return isPlain ? name : `${name.slice(0, SHOWN).toWellFormed()}…`;
}
