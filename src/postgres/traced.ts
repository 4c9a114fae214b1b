import type { Database } from "./pool.ts";

/** Whoever traces statements: does the work, and knows by its name what it is. */
export type TraceStatement = <T>(statement: string, work: () => Promise<T>) => Promise<T>;

/** A database whose statements are traced; without a tracer the database itself. */
export function traced(database: Database, trace: TraceStatement | undefined): Database {
  if (trace === undefined) return database;
  return { run: (work, statement = "statement") => trace(statement, () => database.run(work, statement)) };
}
