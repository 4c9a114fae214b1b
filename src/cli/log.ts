import { type Logger, pino } from "pino";

/** Characters that are written at once. */
const WRITE_SIZE = 16_384;

/** Milliseconds that a line waits for others at the most. */
const MAX_DELAY = 50;

/**
 * The log on standard output. Lines are written some at a time, since to hand on each would cost a busy server more than to make
 * it. Writing does not go on in the background, so a process that ends, by an exception too, leaves no line behind; only
 * SIGKILL takes those that waited.
 */
export function createLog(level: string): Logger {
  const output = new Gathered(pino.destination({ sync: true }));
  process.once("exit", () => output.flush());
  return pino({ level }, output);
}

/** Gathers lines for a slower destination. */
class Gathered {
  readonly #destination: { write(text: string): unknown };
  #text = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(destination: { write(text: string): unknown }) {
    this.#destination = destination;
  }

  write(line: string): void {
    this.#text += line;
    if (this.#text.length >= WRITE_SIZE) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), MAX_DELAY).unref();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#text;
    this.#text = "";
    if (text !== "") this.#destination.write(text);
  }
}
