import type { FastifyBaseLogger } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    outages: OutageLog;
  }
}

/** Milliseconds between two lines of an outage; an outage without a failure for so long is over. */
const INTERVAL = 5_000;

/**
 * Logs calls that an outage of the database has failed: the first with its cause, then how many there were. The access log has each; the same
 * stack for each would be a load of its own.
 */
export class OutageLog {
  readonly #logger: FastifyBaseLogger;
  #failed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: FastifyBaseLogger) {
    this.#logger = logger;
  }

  /** Logs a failed call. `fields` returns the log fields of the call. */
  add(cause: unknown, fields: () => object): void {
    if (this.#timer === undefined) this.#logger.error({ err: cause, ...fields() }, "fault");
    else this.#failed++;
    this.#timer ??= setInterval(() => this.#report(), INTERVAL).unref();
  }

  #report(): void {
    if (this.#failed > 0)
      this.#logger.error({ failed_calls: this.#failed }, "the database is unavailable: calls have failed");
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#failed = 0;
  }
}
