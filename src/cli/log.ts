import { type Logger, pino } from "pino";

/** Characters per write. */
const WRITE_SIZE = 16_384;

/** The same if several processes write to one pipe: only writes up to PIPE_BUF are atomic (pipe(7)). */
const SHARED_WRITE_SIZE = 4096;

/** Maximum delay of a line in milliseconds. */
const MAX_DELAY = 50;

/**
 * Creates the logger on stdout. Lines are buffered, since a write per line would cost a busy server more than formatting it. Writes are
 * synchronous, so an exiting process loses no line, even on an exception; SIGKILL loses the buffer. `shared`: other processes write to
 * the same output.
 */
export function createLog(level: string, shared: "shared" | "own" = "own"): Logger {
  const output = new BufferedOutput(
    pino.destination({ sync: true }),
    shared === "shared" ? SHARED_WRITE_SIZE : WRITE_SIZE,
  );
  process.once("exit", () => output.flush());
  return pino({ level }, output);
}

/** Buffers lines for a slower destination. */
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

  /** Not cancelled by an earlier flush: a new timer per buffer costs more. */
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
