import { expect, test } from "vitest";
import { readTap } from "./tap.ts";

const read = (stdout: string, status: number | null = 0) =>
  readTap({ status, stdout, stderr: "its stderr" }).map(({ name, holds }) => `${holds ? "ok" : "not ok"} ${name}`);

test("reads passed and failed checks, with the found value", () => {
  const stdout = "ok 1 - issue\nnot ok 2 - verify\n  # wanted true\n1..2\n";
  expect(readTap({ status: 1, stdout, stderr: "" })).toEqual([
    { name: "issue", holds: true, comment: "" },
    { name: "verify", holds: false, comment: "wanted true" },
  ]);
});

const END = "not ok runs to its end";

test.for([
  ["nothing", "", 0, [END]],
  ["no plan", "ok 1 - issue\n", 0, ["ok issue", END]],
  ["a plan with more checks", "ok 1 - issue\n1..2\n", 0, ["ok issue", END]],
  ["an empty plan", "1..0\n", 0, [END]],
  ["another exit status", "ok 1 - issue\n1..1\n", 1, ["ok issue", END]],
  ["a signal", "ok 1 - issue\n1..1\n", null, ["ok issue", END]],
  ["a crash after a failure", "not ok 1 - issue\n1..1\n", 2, ["not ok issue", END]],
] as const)("a client that prints %s has failed", ([, stdout, status, wanted]) => {
  expect(read(stdout, status)).toEqual(wanted);
});
