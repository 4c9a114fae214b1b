import { cutOff } from "./errors.ts";
import type { Database } from "./pool.ts";

/** Rejects at once while the database is unreachable, with the reason as the cause, instead of waiting for an answer. */
export function withCircuitBreaker(database: Database, unavailableReason: () => Error | null): Database {
  return {
    run: (work, statement) => {
      const reason = unavailableReason();
      return reason === null ? database.run(work, statement) : Promise.reject(cutOff(reason));
    },
  };
}
