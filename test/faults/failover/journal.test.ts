import { expect, test } from "vitest";
import { History, type Mutation } from "../history.ts";
import { created, deleted, disabled, enabled, rotated } from "../register.ts";
import { type Entry, missing } from "./journal.ts";

const NAME = "key 1";

function rotation(began: number, hint: string): Mutation {
  return { kind: "rotate", node: "node 1", began, acknowledged: began + 5, hint, effect: rotated(began, false) };
}

function entry(hint: string): Entry {
  return { name: NAME, action: "UPDATE", scopes: "", is_revoked: false, hint, is_flip: false };
}

test("a rotation without an entry is missing, however close to the previous one", () => {
  const register = new History().register("issued");
  const [first, second] = [rotation(10, "kh_v1_…aaaa"), rotation(15, "kh_v1_…bbbb")];
  register.mutations.push(first, second);

  expect(missing([entry("kh_v1_…aaaa")], register)).toEqual([second]);
  expect(missing([entry("kh_v1_…aaaa"), entry("kh_v1_…bbbb")], register)).toEqual([]);
});

test("a rotation that was not acknowledged is not missing", () => {
  const register = new History().register("issued");
  register.mutations.push({ ...rotation(10, "kh_v1_…aaaa"), acknowledged: null });

  expect(missing([], register)).toEqual([]);
});

const FLIP: Entry = { ...entry(""), is_flip: true };

function flips(...kinds: readonly ("import" | "delete" | "disable" | "enable")[]): Mutation[] {
  const effects = { import: created(1, []), delete: deleted, disable: disabled, enable: enabled };
  return kinds.map((kind, place) => {
    return { kind, node: "node 1", began: place * 10, acknowledged: place * 10 + 5, effect: effects[kind] };
  });
}

function unanswered(mutation: Mutation): Mutation {
  return { ...mutation, acknowledged: null };
}

test.each([
  ["each change needs an entry", flips("import", "disable", "enable", "disable"), 2, [3]],
  ["a repeat needs that of the change before it", flips("import", "disable", "disable", "enable"), 0, [1, 2, 3]],
  ["a repeat needs no entry of its own", flips("import", "disable", "disable", "enable", "enable"), 2, []],
  ["a repeat is missing with the change before it", flips("import", "disable", "enable", "enable"), 1, [2, 3]],
  ["a key imported again is not disabled", flips("import", "disable", "delete", "import", "enable", "disable"), 1, [5]],
] as const)("disabling and enabling: %s", (_, mutations, entries, expected) => {
  const register = new History().register("imported");
  register.mutations.push(...mutations);
  const journal = [
    entry(""),
    { ...entry(""), action: "DELETE" as const },
    ...Array.from({ length: entries }, () => FLIP),
  ];

  expect(missing(journal, register).map((one) => register.mutations.indexOf(one))).toEqual(expected);
});

test("a disabling without a response counts neither as missing nor for those before it", () => {
  const register = new History().register("imported");
  register.mutations.push(...flips("import", "disable", "enable"), ...flips("disable").map(unanswered));

  expect(missing([entry(""), FLIP, FLIP, FLIP], register)).toEqual([]);
  expect(missing([entry(""), FLIP], register)).toEqual([register.mutations[2]]);
});
