import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { relativeTime } from "../../../src/cli/output.ts";
import { issue } from "../../support/rest.ts";
import { TERMINAL } from "../../support/terminal.ts";
import { useKeysCommand } from "./keys-command.ts";

const { keys, answerOf, rest } = useKeysCommand();

const newPath = () => join(inject("testDir"), randomUUID());

/** Escape sequences in one and in two bytes, DEL, and characters that change the order or the lines of a text. */
const HOSTILE = "a\u001b[31mb\u009b2Jc\u007fd\u202ee\u2028f\u{e0001}g";

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /(?!\n|\u001b\[\d+m)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

test("nothing that others have written manipulates a terminal, also as JSON", async () => {
  const { secret, keyId } = await issue(rest(), {
    name: HOSTILE,
    actor_id: "team_1",
    metadata: { [HOSTILE]: HOSTILE },
  });
  const claim = ["--claim", `nested=${JSON.stringify({ [HOSTILE]: [HOSTILE, "x\ny"] })}`];
  const { token } = await answerOf(["derive", "--algorithm", "macaroon", ...claim], secret);
  const runs: readonly (readonly [args: readonly string[], input?: string])[] = [
    [["get", keyId]],
    [["list", "--actor", "team_1"]],
    [["verify"], token.token],
    [["explain", keyId]],
    [["import", "--name", HOSTILE, "--actor", "team_1", "--ttl", HOSTILE], "raw-key-0123456789"],
  ];
  for (const [args, input] of runs) {
    const [text, json] = await Promise.all([args, [...args, "--json"]].map((all) => keys(all, input, TERMINAL)));
    for (const { stdout, stderr } of [text, json].flatMap((one) => one ?? [])) {
      expect(stdout + stderr).toMatch(/./);
      expect(stdout).not.toMatch(CONTROLS);
      expect(stderr).not.toMatch(CONTROLS);
    }
  }
  const whole = await keys(["get", keyId, "--json"], undefined, TERMINAL);
  expect(JSON.parse(whole.stdout)).toMatchObject({ name: HOSTILE, metadata: { [HOSTILE]: HOSTILE } });
});

test("a terminal shows colours and relative times, and no colours with NO_COLOR; a pipe shows neither", async () => {
  const { keyId } = await issue(rest(), { name: "ci", actor_id: "team_2", ttl: "3d" });
  const list = ["list", "--actor", "team_2"];
  const [colored, plain, piped, record] = await Promise.all([
    keys(list, undefined, TERMINAL),
    keys(list, undefined, { ...TERMINAL, NO_COLOR: "1" }),
    keys(list),
    keys(["get", keyId], undefined, { ...TERMINAL, NO_COLOR: "1" }),
  ]);
  for (const styled of ["\x1b[1mNAME\x1b[22m ", "\x1b[1mKEY ID\x1b[22m ", " \x1b[32mACTIVE\x1b[39m "])
    expect(colored.stdout).toContain(styled);
  expect(plain.stdout).toMatch(
    new RegExp(`^NAME +KEY ID .*\nci +${keyId} +team_2 +ACTIVE +- +\\d+ seconds? ago +in 3 days +-\n$`, "s"),
  );
  expect(piped.stdout).toMatch(/ACTIVE +- +20[^ ]+Z +20[^ ]+Z +-\n$/);
  expect(record.stdout).toMatch(/^expire_time +20\S+Z \(in 3 days\)$/m);
});

test.each([
  [1, "in 1 second"],
  [-100, "2 minutes ago"],
  [3_600, "in 1 hour"],
  [-86_400 * 2.4, "2 days ago"],
  [86_400 * 90, "in 3 months"],
  [-31_536_000 * 2, "2 years ago"],
])("%d seconds from now are %s", (seconds, text) => {
  const now = Date.parse("2030-01-01T00:00:00Z");
  expect(relativeTime(new Date(now + seconds * 1000).toISOString(), now)).toBe(text);
});

test("--output prints one field for scripts", async () => {
  const [file, fields] = [newPath(), ["--name", "ci", "--actor", "team_3", "--metadata", "plan=a b"]];
  const issued = await keys(["issue", ...fields, "--out", file, "--output", "id"]);
  const keyId = issued.stdout.trimEnd();
  expect(keyId).toMatch(/^[\da-f-]{36}$/);
  const secret = (await readFile(file, "utf8")).trimEnd();
  const runs = [
    [["list", "--actor", "team_3", "--output", "id"], `${keyId}\n`],
    [["get", keyId, "--output", "metadata.plan"], "a b\n"],
    [["get", keyId, "--output", "expire_time"], "\n"],
    [["verify", "--output", "actor_id"], "team_3\n"],
  ] as const;
  for (const [args, stdout] of runs) expect(await keys(args, secret)).toMatchObject({ code: 0, stdout, stderr: "" });
  const unknown = await keys(["get", keyId, "--output", "nmae"]);
  expect(unknown).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--output: must be one of id, key_id, name, /),
  });
  const both = await keys(["issue", ...fields, "--output", "id"]);
  expect(both).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--output: requires --out") });
});
