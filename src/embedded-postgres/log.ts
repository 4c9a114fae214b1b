export type Level = "info" | "warn" | "error";

/** Logs a line of the embedded server or an event of its supervision, without a line feed. */
export type Log = (level: Level, message: string) => void;

/** PostgreSQL's severities above `info` (PostgreSQL docs, table 19.2). */
const levels: ReadonlyMap<string, Level> = new Map([
  ["WARNING", "warn"],
  ["ERROR", "warn"],
  ["FATAL", "warn"],
  ["PANIC", "error"],
]);

/** Returns the level of a line such as `FATAL:  role "x" does not exist`. */
export function levelOf(line: string): Level {
  return levels.get(/^[A-Z]+(?=: )/.exec(line)?.[0] ?? "") ?? "info";
}
