import { invalidArgument, type KeyholdError } from "../../domain/errors.ts";

const SPACE = /[ \t\r\n]+/y;

/** A place in the text of a filter. Patterns are sticky and have no choice to take back, so that reading is linear. */
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

  /** The character here; empty at the end. */
  peek(): string {
    const codePoint = this.text.codePointAt(this.offset);
    return codePoint === undefined ? "" : String.fromCodePoint(codePoint);
  }

  /** Takes what the sticky `pattern` matches here; empty when nothing. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.offset += found.length;
    return found;
  }

  /** Takes `character` if it is here. */
  takeOne(character: string): boolean {
    const found = this.text.startsWith(character, this.offset);
    if (found) this.offset += character.length;
    return found;
  }

  skipSpace(): void {
    this.take(SPACE);
  }

  /** What is wrong, where in characters from 1, and what to write instead. It shows no words of the text: one may be a secret. */
  error(problem: string, hint: string, offset = this.offset): KeyholdError {
    const position = countCharacters(this.text.slice(0, offset)) + 1;
    return invalidArgument("filter", `${problem} at position ${position} (${hint})`);
  }

  /** The character here is not what `hint` asks for. */
  unexpected(hint: string): KeyholdError {
    return this.error(this.atEnd ? "unexpected end" : `unexpected ${JSON.stringify(this.peek())}`, hint);
  }
}

export function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** At most the first `count` characters. */
export function firstCharacters(text: string, count: number): string {
  return [...text.slice(0, 2 * count)].slice(0, count).join("");
}
