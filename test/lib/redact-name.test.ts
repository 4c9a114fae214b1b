import { expect, test } from "vitest";
import { redactName } from "../../src/lib/redact-name.ts";

const SHOWN = [
  "",
  "a",
  "page_size",
  "pageSize",
  "scopes2",
  "x".repeat(64),
  "a name\n",
  "__proto__",
  "0123456789abcdef",
];

test.each(SHOWN)("does not redact %j", (name) => {
  expect(redactName(name)).toBe(name);
});

const CUT = [
  [`kh_v1_${"0".repeat(94)}`, "kh_v1_…"],
  ["sk_live_0123456789", "sk_liv…"],
  ["x".repeat(65), "xxxxxx…"],
  [`abcde${"\u{1f511}".repeat(40)}`, "abcde\ufffd…"],
  [`${"\ud800".repeat(65)}`, "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd…"],
] as const;

test.each(CUT)("redacts %j to %j", (name, shown) => {
  expect(redactName(name)).toBe(shown);
});
