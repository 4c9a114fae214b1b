import type { Logger } from "pino";
import { EXIT_STATUS } from "./exit-status.ts";

/** The uncaught exceptions and unhandled rejections of this process. */
export interface Uncaught {
  /** How many there were. */
  readonly count: () => number;
  /**
   * Resolves with why the process is to end in order: with `signal`, or at the first uncaught exception. Until this is called nothing is
   * in flight, and an uncaught exception ends the process at once.
   */
  or(signal: Promise<string>): Promise<string>;
  /** Ends the process if there was one: what it has left behind may keep it running. */
  exitIfAny(): void;
}

/** Milliseconds for the order, which the state of the process may no longer allow; longer than it takes (`closeTimeout`). */
const END_TIMEOUT = 20_000;

/** Logs and counts what nobody caught. Node reports rejections as exceptions, whose `origin` tells. */
export function watchUncaught(logger: Logger, onUncaught: () => void = () => {}): Uncaught {
  const first = Promise.withResolvers<string>();
  let count = 0;
  let isAwaited = false;
  process.on("uncaughtException", (error, origin) => {
    count++;
    process.exitCode = EXIT_STATUS.failed;
    logger.fatal({ err: withoutProperties(error), origin }, "uncaught exception");
    if (!isAwaited) process.exit();
    onUncaught();
    if (count === 1) setTimeout(() => process.exit(), END_TIMEOUT).unref();
    first.resolve("uncaught exception");
  });
  return {
    count: () => count,
    or(signal) {
      isAwaited = true;
      return Promise.race([signal, first.promise]);
    },
    exitIfAny() {
      if (count > 0) process.exit();
    },
  };
}

/** Some errors of Node hold the bytes of a request, which may be a secret. What is thrown need not be an `Error`. */
function withoutProperties(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`a value of type ${typeof error} was thrown`);
  const { message, stack } = error;
  const code = "code" in error ? { code: error.code } : {};
  const cause = error.cause instanceof Error ? { cause: error.cause } : {};
  return Object.assign(Object.create(Object.getPrototypeOf(error)), { message, stack, ...code, ...cause });
}
