import type { Database } from "./pool.ts";

/** Runs work in a span of that name. */
export type TraceStatement = <T>(statement: string, work: () => Promise<T>) => Promise<T>;

/** Decorates a database so that its statements are traced; returns the database itself without a tracer. */
export function traced(database: Database, trace: TraceStatement | undefined): Database {
  if (trace === undefined) return database;
  return { run: (work, statement = "statement") => trace(statement, () => database.run(work, statement)) };
}
