import { cutOff } from "./errors.ts";
import type { Database } from "./pool.ts";

/**
 * Decorates a database with a circuit breaker: while the database is known to be unreachable, statements reject at once with the reason
 * as the cause.
 */
export function withCircuitBreaker(database: Database, unavailableReason: () => Error | null): Database {
  return {
    run: (work, statement) => {
      const reason = unavailableReason();
      return reason === null ? database.run(work, statement) : Promise.reject(cutOff(reason));
    },
  };
}
