import { invalidArgument } from "../../domain/errors.ts";

/** The entries of an option that is given as `name=value`, each name once. */
export function pairs(option: string, texts: readonly string[] = []): Record<string, string> {
  const entries = texts.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw invalidArgument(option, "must be of the form name=value");
    return [text.slice(0, at), text.slice(at + 1)];
  });
  if (new Set(entries.map(([name]) => name)).size < entries.length) throw invalidArgument(option, "has a name twice");
  return Object.fromEntries(entries);
}
