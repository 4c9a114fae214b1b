import { Command, type ErrorOptions } from "commander";

/** A command whose usage errors quote no argument, since it may be a secret in the wrong place. */
export class KeyholdCommand extends Command {
  override createCommand(name?: string): Command {
    return new KeyholdCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    return super.error(
      REWRITES.reduce((text, [pattern, shown]) => text.replace(pattern, shown), message),
      options,
    );
  }
}

/** The errors of commander that have an argument, and what replaces it. An unknown option is named without its value. */
const REWRITES: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/(?<=^error: unknown option) '(--?[a-z-]{1,24})=.*'(?=$|\n\(Did you mean)/s, " '$1'"],
  [/(?<=^error: unknown option) '(?!--?[a-z-]{1,24}'(?:$|\n)).*'(?=$|\n\(Did you mean)/s, ""],
  [/(?<=^error: unknown command) '.*'(?=$|\n\(Did you mean)/s, ""],
  [/(?<=^error: option '[^']+') argument '.*'(?= is invalid\.)/s, ""],
  [/^error: command-argument value '.*' is invalid for (argument '[^']+')\./s, "error: $1 is invalid."],
  [/(?<=^error: too many arguments[^:]* but got \d+): .*\.$/s, "."],
];
