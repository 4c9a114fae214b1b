import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { nodesOf } from "../../src/cli/completion/tree.ts";
import { createProgram } from "../../src/cli/program.ts";
import { table } from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";

let script: string;
beforeAll(async () => {
  const { stdout, code } = await runKeyhold(["completion", "bash"], {});
  expect(code).toBe(0);
  script = stdout;
});

/** What bash offers for the last of these words. */
async function offered(words: readonly string[]): Promise<string[]> {
  const program = `${script}
    complete -p keyhold | grep -q -- '-F _keyhold' || exit 9
    COMP_WORDS=(keyhold "$@"); COMP_CWORD=$#; _keyhold
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["-c", program, "bash", ...words]);
  return stdout.split("\n").filter(Boolean);
}

const CASES: readonly (readonly [readonly string[], readonly string[]])[] = [
  [["key"], ["keys"]],
  [["keys", "re"], ["revoke"]],
  [["keys", "revoke", "--re"], ["--reason"]],
  [["keys", "revoke", "--reason", "s"], ["superseded"]],
  [["keys", "revoke", "--reason", "superseded", "--se"], ["--self"]],
  [
    ["signing-keys", ""],
    ["list", "rotate", "--help"],
  ],
  [["keys", "issue", "--out", ""], []],
  [
    ["completion", ""],
    ["bash", "zsh", "fish", "--help"],
  ],
];

test.each(table(CASES))("bash completes %j", async (words, expected) => {
  expect((await offered(words)).sort()).toEqual([...expected].sort());
});

test("every command that is not hidden is completed", () => {
  const paths = nodesOf(createProgram()).map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["", "serve", "keys import", "admin token create"]));
  expect(paths).not.toContain("worker");
});
