import type { Logger } from "pino";
import { EXIT_STATUS } from "./exit-status.ts";

/** Milliseconds for the shutdown, which may hang after an exception; longer than a regular one (`closeTimeout`). */
const SHUTDOWN_TIMEOUT = 20_000;

export type Uncaught = ReturnType<typeof watchUncaught>;

/** Logs and counts uncaught exceptions. Node reports unhandled rejections as exceptions; `origin` distinguishes them. */
export function watchUncaught(logger: Logger, onUncaught: () => void = () => {}) {
  const first = Promise.withResolvers<string>();
  let count = 0;
  let isAwaited = false;
  process.on("uncaughtException", (error, origin) => {
    count++;
    process.exitCode = EXIT_STATUS.failed;
    logger.fatal({ err: withoutProperties(error), origin }, "uncaught exception");
    if (!isAwaited) process.exit();
    onUncaught();
    if (count === 1) setTimeout(() => process.exit(), SHUTDOWN_TIMEOUT).unref();
    first.resolve("uncaught exception");
  });
  return {
    count: () => count,
    /**
     * Resolves when the process must shut down: with `signal`, or on the first uncaught exception. Before this is called there are no calls
     * in flight, and an uncaught exception exits at once.
     */
    or(signal: Promise<string>): Promise<string> {
      isAwaited = true;
      return Promise.race([signal, first.promise]);
    },
    /** Exits if there was one: its leftovers may keep the process alive. */
    exitIfAny() {
      if (count > 0) process.exit();
    },
  };
}

/** Some errors of Node contain the bytes of a request, which may be a secret. A thrown value need not be an `Error`. */
function withoutProperties(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`a value of type ${typeof error} was thrown`);
  const { message, stack } = error;
  const code = "code" in error ? { code: error.code } : {};
  const cause = error.cause instanceof Error ? { cause: error.cause } : {};
  return Object.assign(Object.create(Object.getPrototypeOf(error)), { message, stack, ...code, ...cause });
}
