import { expect, test } from "vitest";
import { levelOf } from "../../src/embedded-postgres/postmaster.ts";

const samples = [
  ["LOG:  database system is ready to accept connections", "info"],
  ["WARNING:  page verification failed", "warn"],
  ["ERROR:  deadlock detected", "warn"],
  ["FATAL:  the database system is starting up", "warn"],
  ["PANIC:  could not write to file", "error"],
  ["postgres: something before the log is set up", "info"],
  ["", "info"],
] as const;

test("the list of samples is complete", () => expect(samples.length).toBeGreaterThan(0));

test.each(samples)("%s", (line, level) => expect(levelOf(line)).toBe(level));
