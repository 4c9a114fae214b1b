import { expect, test } from "vitest";
import description from "../../package.json" with { type: "json" };
import { table } from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";

const ERRORS: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [["nonsense"], /^error: unknown command 'nonsense'\n/],
  [["kees"], /^error: unknown command 'kees'\n\(Did you mean keys\?\)\n/],
  [["keys", "nonsense"], /^error: unknown command 'nonsense'\n/],
  [["keys", "list", "--filer", "x"], /^error: unknown option '--filer'\n\(Did you mean --filter\?\)\n/],
  [["keys", "get"], /^error: missing required argument 'key_id'\n/],
  [["keys", "list", "--limit", "0"], /^error: option '--limit <count>' argument '0' is invalid\./],
  [["keys", "revoke", "--reason", "bored"], /^error: option '--reason <reason>' argument 'bored' is invalid\./],
  [["admin", "token", "create"], /^error: required option '--name <name>' not specified\n/],
  [["doctor", "much"], /^error: too many arguments for 'doctor'\./],
  [["completion", "csh"], /^error: command-argument value 'csh' is invalid for argument 'shell'\./],
];

test.each(table(ERRORS))("%j is an error without help", async (args, message) => {
  const { code, stdout, stderr } = await runKeyhold(args, {});
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
  expect(stderr).toMatch(/\nRun the command with --help for usage\.\n$/);
  expect(stderr.split("\n").length).toBeLessThanOrEqual(4);
});

test.each(table([["--version"], ["-V"], ["version"]]))("%s shows the version", async (arg) => {
  expect(await runKeyhold([arg], {})).toMatchObject({ code: 0, stdout: `${description.version}\n`, stderr: "" });
});

test("with --json a usage error is JSON only", async () => {
  const { code, stderr } = await runKeyhold(["keys", "get", "--json"], {});
  expect(code).toBe(2);
  expect(JSON.parse(stderr).error).toMatchObject({ status: "INVALID_ARGUMENT" });
});
