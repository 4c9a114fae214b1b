const SHOWN = 6;

/** Longest name that is quoted, and longest of one that does not consist of words. */
const MAX_WORDS = 16;
const MAX_OTHER = 8;

/** Words as in `page_size`, `pageSize` and `Cost-Center`: a random text of this form is improbable. */
const WORDS = /^_*[A-Za-z]?[a-z]+(?:[-_. ][A-Za-z]?[a-z]+|[A-Z][a-z]+)*_*$/;

/**
 * Returns an unknown name to quote in an error, such as that of a field. It may be a misplaced secret: only its first six characters are
 * returned unless it is short, has the form of a name, and is not longer than the longest of the names that are expected there.
 */
export function redactName(name: string, expected: readonly string[] = []): string {
  const longest = expected.reduce((length, known) => Math.max(length, known.length), 0) || MAX_WORDS;
  const isShown = name.length <= Math.min(longest, WORDS.test(name.slice(0, MAX_WORDS)) ? MAX_WORDS : MAX_OTHER);
  return isShown ? name : `${name.slice(0, SHOWN).toWellFormed()}…`;
}
