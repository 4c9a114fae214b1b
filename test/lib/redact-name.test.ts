import fc from "fast-check";
import { expect, test } from "vitest";
import { redactName } from "../../src/lib/redact-name.ts";

const SHOWN = ["", "a", "page_size", "pageSize", "Cost-Center", "scopes2", "a name\n", "__proto__", "sha256"];

test.each(SHOWN)("does not redact %j", (name) => {
  expect(redactName(name)).toBe(name);
});

const CUT = [
  [`kh_v1_${"0".repeat(94)}`, "kh_v1_…"],
  ["sk_live_0123456789", "sk_liv…"],
  ["0123456789abcdef", "012345…"],
  ["QfLWBxTzKVRm", "QfLWBx…"],
  ["seventeen_letters", "sevent…"],
  ["x".repeat(64), "xxxxxx…"],
  [`abcde${"\u{1f511}".repeat(40)}`, "abcde\ufffd…"],
  [`${"\ud800".repeat(65)}`, "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd…"],
] as const;

test.each(CUT)("redacts %j to %j", (name, shown) => {
  expect(redactName(name)).toBe(shown);
});

test("shows nothing longer than the longest expected name", () => {
  expect(redactName("credentials", ["credential"])).toBe("creden…");
  expect(redactName("creditable", ["ttl", "credential"])).toBe("creditable");
  expect(redactName("restricted_to_actor", ["restricted_to_actor_ids"])).toBe("restri…");
});

test("shows no random secret of 17 characters or more, with or without digits", () => {
  const letters = fc.string({
    unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz_ABC"),
    minLength: 17,
    maxLength: 100,
  });
  fc.assert(
    fc.property(letters, (secret) => {
      expect(redactName(secret)).toBe(`${secret.slice(0, 6)}…`);
    }),
  );
});
