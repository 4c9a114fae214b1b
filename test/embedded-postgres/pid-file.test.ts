import { expect, test } from "vitest";
import { parsePidFile } from "../../src/embedded-postgres/pid-file.ts";

/** As PostgreSQL 18 writes them (src/include/utils/pidfile.h). */
const samples = [
  ["ready", "17\n/d/postgres\n1700000000\n5432\n.\n\n  1\t 2\nready   \n", { pid: 17, socketDir: "/c", ready: true }],
  ["starting", "17\n/d\n1700000000\n5432\n/tmp/s\n\n  1 2\nstarting\n", { pid: 17, socketDir: "/tmp/s", ready: false }],
  ["without a socket yet", "17\n/d\n1700000000\n5432\n", { pid: 17, socketDir: undefined, ready: false }],
  ["of a single-user server", "-17\n/d\n1700000000\n5432\n\n", { pid: 17, socketDir: undefined, ready: false }],
  ["just created", "", undefined],
  ["torn", "\n", undefined],
  ["of something else", "hello\nworld\n", undefined],
] as const;

test("the list of samples is complete", () => expect(samples.length).toBeGreaterThan(0));

test.each(samples)("reads a file %s", (_, text, expected) => {
  expect(parsePidFile(text, "/c")).toEqual(expected);
});
