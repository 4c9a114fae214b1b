/** The form of our own secrets, JWTs and the like. */
const OWN_FORM = /_v\d+_|^eyJ/;

/** A run without separators that random text has and names have not. */
const RUN = /[A-Za-z0-9]{12,}/g;

/** A file or host name, which may contain a random part. */
const DOTTED_NAME = /^[\w.-]+\.[a-z]{1,10}$/;

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

const SEPARATORS = /[/\\=?#&@:,\s]+/;

/** Whether a part of a path, URL or argument may be a misplaced credential. */
function looksLikeCredential(part: string): boolean {
  if (OWN_FORM.test(part)) return true;
  if (UUID.test(part) || DOTTED_NAME.test(part)) return false;
  return (part.match(RUN) ?? []).some(
    (run) => run.length >= 24 || /\d/.test(run) || (run.match(/[a-z][A-Z]/g)?.length ?? 0) > 2,
  );
}

/** Returns a message without the parts of command-line arguments that may be credentials. */
export function redactArguments(message: string, args: readonly string[] = process.argv.slice(2)): string {
  const secrets = args.flatMap((argument) => argument.split(SEPARATORS)).filter(looksLikeCredential);
  return secrets.reduce((text, secret) => text.replaceAll(secret, "…"), message);
}

/** Returns a path to quote in an error. A word with a digit that is neither in a folder nor has an extension may be a secret too. */
export function shownPath(path: string): string {
  const isWord = !/[/\\.]/.test(path) && /\d/.test(path);
  return isWord ? "…" : redactArguments(path, [path]);
}

/** Returns a message with its URLs, of whose paths anything may be a credential, shortened to their origins. */
export function shortenUrls(message: string): string {
  return message.replace(/(https?:\/\/[^\s/]+)\/[^\s:]+/g, "$1/…");
}
