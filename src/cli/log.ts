import { type Logger, pino } from "pino";

/** Characters that are written at once. */
const WRITE_SIZE = 16_384;

/** The same where several processes write to one pipe: what is larger may be cut by what another writes (pipe(7), PIPE_BUF). */
const SHARED_WRITE_SIZE = 4096;

/** Milliseconds that a line waits for others at the most. */
const MAX_DELAY = 50;

/**
 * The log on standard output. Lines are written some at a time, since to hand on each would cost a busy server more than to make
 * it. Writing does not go on in the background, so a process that ends, by an exception too, leaves no line behind; only
 * SIGKILL takes those that waited. `shared`: other processes write to the same output.
 */
export function createLog(level: string, shared: "shared" | "own" = "own"): Logger {
  const output = new BufferedOutput(
    pino.destination({ sync: true }),
    shared === "shared" ? SHARED_WRITE_SIZE : WRITE_SIZE,
  );
  process.once("exit", () => output.flush());
  return pino({ level }, output);
}

/** Gathers lines for a slower destination. */
class BufferedOutput {
  readonly #destination: { write(text: string): unknown };
  readonly #size: number;
  #text = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(destination: { write(text: string): unknown }, size: number) {
    this.#destination = destination;
    this.#size = size;
  }

  write(line: string): void {
    if (this.#text.length + line.length > this.#size) this.flush();
    this.#text += line;
    if (this.#text.length >= this.#size) this.flush();
    else this.#timer ??= setTimeout(this.#onTimeout, MAX_DELAY).unref();
  }

  /** It stays set when the buffer is flushed earlier: to set one again for each costs more. */
  readonly #onTimeout = (): void => {
    this.#timer = undefined;
    this.flush();
  };

  flush(): void {
    const text = this.#text;
    this.#text = "";
    if (text !== "") this.#destination.write(text);
  }
}
