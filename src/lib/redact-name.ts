const SHOWN = 6;

/**
 * Returns a name to quote in an error, such as an unknown field. A long name with digits may be a misplaced secret, so only its first six
 * characters are returned; likewise of a name above 64 characters.
 */
export function redactName(name: string): string {
  const isPlain = name.length <= 16 || (name.length <= 64 && !/\d/.test(name));
  return isPlain ? name : `${name.slice(0, SHOWN).toWellFormed()}…`;
}
