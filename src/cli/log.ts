import { type Logger, pino } from "pino";
import { escapeInJson } from "./output.ts";

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
  const size = shared === "shared" ? SHARED_WRITE_SIZE : WRITE_SIZE;
  const destination = pino.destination({ sync: true });
  let buffer = "";
  let isScheduled = false;
  const flush = () => {
    const text = buffer;
    buffer = "";
    if (text !== "") destination.write(process.stdout.isTTY ? escapeInJson(text) : text);
  };
  // Not cancelled by an earlier flush: a new timer per buffer costs more.
  const onTimeout = () => {
    isScheduled = false;
    flush();
  };
  const write = (line: string) => {
    if (buffer.length + line.length > size) flush();
    buffer += line;
    if (buffer.length >= size) flush();
    else if (!isScheduled) {
      isScheduled = true;
      setTimeout(onTimeout, MAX_DELAY).unref();
    }
  };
  process.once("exit", flush);
  return pino({ level }, { write });
}
