export type Level = "info" | "warn" | "error";

/** Where the embedded server's own lines, and what befalls it, are told. One line a call, without an end of line. */
export type Log = (level: Level, message: string) => void;

/** PostgreSQL's severities that deserve attention; all others are for information (PostgreSQL docs, table 19.2). */
const levels: ReadonlyMap<string, Level> = new Map([
  ["WARNING", "warn"],
  ["ERROR", "warn"],
  ["FATAL", "warn"],
  ["PANIC", "error"],
]);

/** The level of a line such as `FATAL:  role "x" does not exist`. */
export function levelOf(line: string): Level {
  return levels.get(/^[A-Z]+(?=: )/.exec(line)?.[0] ?? "") ?? "info";
}
