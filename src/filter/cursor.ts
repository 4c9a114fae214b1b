import { invalidArgument, type KeyholdError } from "../domain/errors.ts";

const SPACE = /[ \t\r\n]+/y;

/** A position in a filter. Patterns are sticky and free of backtracking, so parsing takes linear time. */
export class Cursor {
  readonly text: string;
  /** In UTF-16 units; messages count characters. */
  offset = 0;

  constructor(text: string) {
    this.text = text;
  }

  get atEnd(): boolean {
    return this.offset === this.text.length;
  }

  /** Returns the character at the position; empty at the end. */
  peek(): string {
    const codePoint = this.text.codePointAt(this.offset);
    return codePoint === undefined ? "" : String.fromCodePoint(codePoint);
  }

  /** Consumes what the sticky `pattern` matches; empty if nothing. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.offset += found.length;
    return found;
  }

  /** Consumes `character` if it is next. */
  takeOne(character: string): boolean {
    const found = this.text.startsWith(character, this.offset);
    if (found) this.offset += character.length;
    return found;
  }

  skipSpace(): void {
    this.take(SPACE);
  }

  /** Returns an error with the problem, its position in characters from 1, and a hint. Never quotes the filter, which may contain a secret. */
  error(problem: string, hint: string, offset = this.offset): KeyholdError {
    const position = [...this.text.slice(0, offset)].length + 1;
    return invalidArgument("filter", `${problem} at position ${position} (${hint})`);
  }

  /** Returns the error of an unexpected character. */
  unexpected(hint: string): KeyholdError {
    return this.error(this.atEnd ? "unexpected end" : `unexpected ${JSON.stringify(this.peek())}`, hint);
  }
}
