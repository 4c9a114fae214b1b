import { expect, test } from "vitest";
import { table, useService } from "../support/conformance.ts";
import { issue } from "../support/rest.ts";
import { readPage } from "./blocks.ts";

const { rest } = useService();

const rules = readPage("docs/concepts.md").blocks.filter(({ role }) => role === "scanner");

/** The pattern of each rule. GitHub surrounds it with the defaults documented under "custom patterns". */
const PATTERNS: Readonly<Record<string, (rule: string) => string | undefined>> = {
  "text pattern": (rule) => `(?:^|[^0-9A-Za-z])(${rule.trim()})(?:$|[^0-9A-Za-z])`,
  toml: (rule) => /^regex = '''(.*)'''$/m.exec(rule)?.[1],
  yaml: (rule) => /^ +secret: '(.*)'$/m.exec(rule)?.[1],
};

/** Returns the matches of a rule in a text: its first group. */
function findBy(info: string, rule: string): (text: string) => string | undefined {
  const pattern = PATTERNS[info]?.(rule);
  if (pattern === undefined) throw new Error(`no pattern in ${rule}`);
  return (text) => new RegExp(pattern).exec(text)?.[1];
}

/** Texts that contain secrets. */
const PLACES = [
  (secret: string) => secret,
  (secret: string) => `KEYHOLD_SECRET=${secret}\nOTHER=1`,
  (secret: string) => `{"secret":"${secret}"}`,
  (secret: string) => `curl -H 'Authorization: Bearer ${secret}' https://example.com`,
  (secret: string) => `https://example.com/?key=${secret}&page=2`,
];

const NEAR_MISSES = [
  (secret: string) => secret.slice(0, -1),
  (secret: string) => `${secret}0`,
  (secret: string) => secret.replace("_v1_", "_v2_"),
  (secret: string) => secret.replace("kh_", "KH_"),
  (secret: string) => `${secret.slice(0, 50)}-${secret.slice(51)}`,
  (secret: string) => `${secret.slice(0, 50)}\n${secret.slice(50)}`,
];

test("there is a rule for each scanner", () => {
  expect(rules.map(({ info }) => info).sort()).toEqual(Object.keys(PATTERNS).sort());
});

test.for(table(rules))(
  "the rule of the block `$info` finds secrets of the server and nothing similar",
  async ({ info, text }) => {
    const find = findBy(info, text);
    for (let round = 0; round < 20; round++) {
      const { secret } = await issue(rest);
      expect(PLACES.map((place) => find(place(secret)))).toEqual(PLACES.map(() => secret));
      expect(NEAR_MISSES.map((miss) => find(`KEYHOLD_SECRET=${miss(secret)}\n`))).toEqual(
        NEAR_MISSES.map(() => undefined),
      );
    }
  },
);
