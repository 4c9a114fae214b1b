import { CommanderError } from "commander";
import { expect, onTestFinished, test, vi } from "vitest";
import description from "../../package.json" with { type: "json" };
import { createProgram } from "../../src/cli/program.ts";
import { redactArguments, shortenUrls, shownPath } from "../../src/cli/redact.ts";
import { table } from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";

const ERRORS: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [["nonsense"], /^error: unknown command\n/],
  [["kees"], /^error: unknown command\n\(Did you mean keys\?\)\n/],
  [["keys", "nonsense"], /^error: unknown command\n/],
  [["keys", "list", "--filer", "x"], /^error: unknown option '--filer'\n\(Did you mean --filter\?\)\n/],
  [["keys", "get"], /^error: missing required argument 'key_id'\n/],
  [["keys", "list", "--limit", "0"], /^error: option '--limit <count>' is invalid\./],
  [["keys", "revoke", "--reason", "bored"], /^error: option '--reason <reason>' is invalid\./],
  [["admin", "token", "create"], /^error: required option '--name <name>' not specified\n/],
  [["doctor", "much"], /^error: too many arguments for 'doctor'\. Expected 0 arguments but got 1\.\n/],
  [["completion", "csh"], /^error: argument 'shell' is invalid\./],
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

test("the version as JSON has the build", async () => {
  const { stdout } = await runKeyhold(["version", "--json"], {});
  expect(JSON.parse(stdout)).toEqual({ version: description.version, build: expect.stringMatching(/^[\da-f]{12}$/) });
});

test("with --json a usage error is JSON only", async () => {
  const { code, stderr } = await runKeyhold(["keys", "get", "--json"], {});
  expect(code).toBe(2);
  expect(JSON.parse(stderr).error).toMatchObject({ status: "INVALID_ARGUMENT" });
});

const SECRETS = [`kh_v1_${"a1".repeat(20)}`, "hunter2", "line\nbreak' is invalid", "AbCdEfGhIjKlMnOpQr", "it's"];

/** Where an argument may be a secret by mistake: arguments, and what the error names. */
const MISPLACED: readonly (readonly [args: (secret: string) => string[], named: RegExp])[] = [
  [(s) => [`--token=${s}`], /'--token'/],
  [(s) => ["keys", "verify", `--credential=${s}`], /'--credential'/],
  [(s) => ["keys", "list", `--${s.toUpperCase()}`], /unknown option/],
  [(s) => [s], /unknown command/],
  [(s) => ["keys", s], /unknown command/],
  [(s) => ["keys", "list", s], /too many arguments for 'list'/],
  [(s) => ["keys", "get", "a", s, s], /but got 3\./],
  [(s) => ["keys", "list", "--limit", s], /'--limit <count>'/],
  [(s) => ["keys", "list", `--kind=${s}`], /'--kind <kind>'/],
  [(s) => ["admin", "token", "create", "--name", "a", "--ttl", "1d", "--ttl", s, s], /too many arguments/],
  [(s) => ["completion", s], /argument 'shell'/],
];

test.each(SECRETS)("no usage error quotes the argument %j", async (secret) => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  for (const isJson of [false, true]) {
    for (const [args, named] of MISPLACED) {
      write.mockClear();
      await expect(createProgram(isJson).parseAsync(args(secret), { from: "user" })).rejects.toThrow(CommanderError);
      const written = write.mock.calls.map(([text]) => String(text)).join("");
      expect(written).toMatch(named);
      expect(written).not.toContain(secret);
    }
  }
});

const SECRET = `kh_v1_${"a1".repeat(20)}`;

test.each(
  table([
    [["keys", "list", "--token-file", SECRET], "--token-file: … cannot be read (ENOENT)"],
    [["keys", "list", "--token-file", "hunter2"], "--token-file: … cannot be read (ENOENT)"],
    [["keys", "list", "--ca-file", SECRET], "--ca-file: … cannot be read (ENOENT)"],
    [["keys", "verify", "--credential-file", SECRET], "--credential-file: … cannot be read (ENOENT)"],
    [["keys", "verify", "--credential-file", "/no/file"], "--credential-file: /no/file cannot be read (ENOENT)"],
    [["keys", "import", SECRET, "--format", "csv"], "file: … cannot be read (ENOENT)"],
    [
      ["keys", "issue", "--name", "a", "--actor", "b", "--out", `/no/${SECRET}`],
      "--out: /no/… cannot be created (ENOENT)",
    ],
    [["keys", "list", "--url", `http://127.0.0.1:1/${SECRET}`], "http://127.0.0.1:1/… is unreachable"],
    [["keys", "list", "--url", "http://127.0.0.1:1/hunter2"], "http://127.0.0.1:1/… is unreachable"],
    [["keys", "get", SECRET], "is unreachable"],
    [["admin", "token", "create", "--name", "a", "--scope", SECRET], "--scope: must be one of keyhold:admin, "],
  ] as const),
)("%j: the error names the option, and no secret", async (args, message) => {
  const environment = { KEYHOLD_URL: "http://127.0.0.1:1" };
  const input = { input: "kh_v1_x" };
  const [plain, json] = await Promise.all(
    [args, [...args, "--json"]].map((all) => runKeyhold(all, environment, input)),
  );
  expect(plain?.stderr).toContain(message);
  expect(JSON.parse(json?.stderr ?? "").error.message).toContain(message);
  for (const text of [plain?.stderr, json?.stderr]) expect(text).not.toMatch(/hunter2|kh_v1/);
});

test("what may be a credential is not quoted, names are", () => {
  const shown = [
    "/etc/keyhold/admin.token",
    "C:\\keys\\export-2024.csv",
    "keys.jsonl",
    "admin-token",
    "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10.csv",
    "./Library/Application Support/x",
  ];
  expect(shown.map(shownPath)).toEqual(shown);
  const secrets = [SECRET, "hunter2", "eyJh.eyJz.c2ln", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "AbCdEfGhIjKlMnOpQr/x"];
  for (const secret of secrets) expect(shownPath(secret)).toMatch(/^…(\/x)?$/);
  expect(redactArguments(`not ${SECRET}, but team_42`, ["--id", `a=${SECRET}`, "team_42"])).toBe("not …, but team_42");
  expect(shortenUrls("http://[::1]:80/a/b: no, https://c.example is")).toBe(
    "http://[::1]:80/…: no, https://c.example is",
  );
});
