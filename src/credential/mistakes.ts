/** Visible ASCII without quotation marks, of which most credentials consist: they have no mistake. */
const PLAIN = /^[^\0-\x20"'`\x7f-\u{10ffff}]*$/u;

const QUOTES = "[\"'`\u2018-\u201f\u00ab\u00bb]";

/** The mistakes of those who copy or configure a credential, each as the end of a sentence about it; the first that applies counts. */
const MISTAKES: readonly (readonly [description: string, form: RegExp])[] = [
  ["begins with a byte order mark (U+FEFF): remove it", /^\ufeff/],
  ["begins or ends with white space: remove it", /^\s|\s$/],
  ["is in quotation marks: remove them", new RegExp(`^${QUOTES}|${QUOTES}$`)],
  ["begins with an authentication scheme: send only the credential", /^(?:bearer|basic|token|apikey|api-key):?\s/i],
  ["contains an invisible character: remove it", /[\p{Cf}\p{Cc}\p{Zl}\p{Zp}]/u],
  ["contains white space: send only the credential", /\s/],
];

/**
 * Returns what is wrong with the form of a credential that is unknown, as the end of a sentence about it. It depends on the text alone and
 * contains no part of it, so it tells the holder nothing about keys.
 */
export function mistakeIn(credential: string): string | null {
  if (PLAIN.test(credential)) return null;
  const found = MISTAKES.find(([, form]) => form.test(credential));
  if (found !== undefined) return found[0];
  if (credential.normalize("NFC") !== credential.normalize("NFD"))
    return "has characters with two Unicode forms (NFC, NFD): send the form that was imported";
  if (/[^\0-\x7f]/.test(credential)) return "contains a non-ASCII character: check that this is the correct credential";
  return null;
}
