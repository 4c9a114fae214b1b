import { expect, test } from "vitest";
import { issue } from "../../support/rest.ts";
import { TERMINAL } from "../../support/terminal.ts";
import { useKeysCommand } from "./keys-command.ts";

const { keys, answerOf, rest } = useKeysCommand();

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
