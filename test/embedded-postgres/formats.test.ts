import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePidFile } from "../../src/embedded-postgres/pid-file.ts";
import { levelOf } from "../../src/embedded-postgres/postmaster.ts";
import { socketUrl } from "../../src/embedded-postgres/socket.ts";
import { table } from "../support/conformance.ts";
import { socketOptions } from "../support/socket-options.ts";

const LINES = [
  ["LOG:  database system is ready to accept connections", "info"],
  ["WARNING:  page verification failed", "warn"],
  ["ERROR:  deadlock detected", "warn"],
  ["FATAL:  the database system is starting up", "warn"],
  ["PANIC:  could not write to file", "error"],
  ["postgres: something before the log is set up", "info"],
  ["", "info"],
] as const;

test.each(table(LINES))("the line %j has the level %s", (line, level) => expect(levelOf(line)).toBe(level));

/** As PostgreSQL 18 writes them (src/include/utils/pidfile.h). */
const PID_FILES = [
  ["ready", "17\n/d/postgres\n1700000000\n5432\n.\n\n  1\t 2\nready   \n", { pid: 17, socketDir: "/c", ready: true }],
  ["starting", "17\n/d\n1700000000\n5432\n/tmp/s\n\n  1 2\nstarting\n", { pid: 17, socketDir: "/tmp/s", ready: false }],
  ["without a socket yet", "17\n/d\n1700000000\n5432\n", { pid: 17, socketDir: undefined, ready: false }],
  ["of a single-user server", "-17\n/d\n1700000000\n5432\n\n", { pid: 17, socketDir: undefined, ready: false }],
  ["just created", "", undefined],
  ["torn", "\n", undefined],
  ["of something else", "hello\nworld\n", undefined],
] as const;

test.each(table(PID_FILES))("reads a pid file %s", (_, text, expected) => {
  expect(parsePidFile(text, "/c")).toEqual(expected);
});

test("the client finds the folder in the URL, for any name", () => {
  const folders = fc
    .string({ unit: "grapheme", minLength: 1 })
    .filter((name) => !/[\0/]/.test(name) && !/^\.\.?$/.test(name));
  fc.assert(
    fc.property(folders, (name) => {
      const url = socketUrl(`/data/${name}`, "keyhold", "keyhold");
      expect(socketOptions(url).path).toBe(`/data/${name}/.s.PGSQL.5432`);
      expect(new URL(url)).toMatchObject({ username: "keyhold", pathname: "/keyhold" });
    }),
  );
});

test("a URL with a host name needs no further options", () => {
  expect(socketOptions("postgres://user:secret@db.example:5433/keys?sslmode=require")).toEqual({});
});
