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

/** Runs work in a span of that name. */
export type TraceStatement = <T>(statement: string, work: () => Promise<T>) => Promise<T>;

/** Decorates a database so that its statements are traced; returns the database itself without a tracer. */
export function traced(database: Database, trace: TraceStatement | undefined): Database {
  if (trace === undefined) return database;
  return { run: (work, statement = "statement") => trace(statement, () => database.run(work, statement)) };
}
