import { type Logger, pino } from "pino";

/** Bytes that are written at once. */
const WRITE_SIZE = 4096;

/** Milliseconds that a line waits for others at the most. */
const MAX_DELAY = 50;

/**
 * The log on standard output. Lines are written some at a time, since a system call for each would cost a busy server as much
 * as the line itself. Writing does not go on in the background, so a process that ends, by an exception too, leaves no line
 * behind; only SIGKILL takes those that waited.
 */
export function createLog(level: string): Logger {
  const output = pino.destination({ sync: true, minLength: WRITE_SIZE, periodicFlush: MAX_DELAY });
  process.once("exit", () => output.flush());
  return pino({ level }, output);
}
