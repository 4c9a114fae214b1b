import type { FastifyBaseLogger } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    outages: OutageLog;
  }
}

/** Milliseconds between two lines of an outage; an outage without a failure for so long is over. */
const INTERVAL = 5_000;

export type OutageLog = ReturnType<typeof createOutageLog>;

/**
 * Logs calls that an outage of the database has failed: the first with its cause, then how many there were. The access log has each; the same
 * stack for each would be a load of its own.
 */
export function createOutageLog(logger: FastifyBaseLogger) {
  let failed = 0;
  let timer: NodeJS.Timeout | undefined;
  const report = () => {
    if (failed > 0) logger.error({ failed_calls: failed }, "the database is unavailable: calls have failed");
    else {
      clearInterval(timer);
      timer = undefined;
    }
    failed = 0;
  };
  return {
    /** Logs a failed call. `fields` returns the log fields of the call. */
    add(cause: unknown, fields: () => object): void {
      if (timer === undefined) logger.error({ err: cause, ...fields() }, "fault");
      else failed++;
      timer ??= setInterval(report, INTERVAL).unref();
    },
  };
}
