import { expect, test } from "vitest";
import { rawKeyWarnings } from "../../src/credential/header-form.ts";

test.each([
  ["sk_live_0123456789-~!+/=:.", []],
  ["a\nb", ["line break"]],
  ["a\r\nb", ["line break"]],
  ["a\0b", ["control characters"]],
  ["a\x7fb", ["control characters"]],
  ["a\x85b", ["control characters", "non-ASCII"]],
  [" ab", ["begins or ends with a space"]],
  ["ab\t", ["begins or ends with a space"]],
  ["a b", []],
  ["a,b", ["comma"]],
  ["schlüssel", ["non-ASCII"]],
  ["\u{1f511}", ["non-ASCII"]],
  [" a,\n", ["line break", "begins or ends with a space", "comma"]],
])("%j is warned of: %j", (rawKey, problems) => {
  const warnings = rawKeyWarnings(rawKey);
  expect(warnings).toEqual(problems.map((problem) => expect.stringMatching(`^raw_key: .*${problem}`)));
  expect(warnings.join()).not.toContain(rawKey);
});
