import { expect, test } from "vitest";
import { History, type Mutation } from "../history.ts";
import { created, deleted, disabled, enabled, rotated } from "../register.ts";
import { type Entry, missing } from "./journal.ts";

const NAME = "key 1";

function rotation(began: number, hint: string): Mutation {
  return { kind: "rotate", node: "node 1", began, acknowledged: began + 5, hint, effect: rotated(began, false) };
}

function entry(hint: string): Entry {
  return { name: NAME, action: "UPDATE", scopes: "", is_revoked: false, hint, is_disabled: false, time: 0 };
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

type Kind = "import" | "delete" | "disable" | "enable";

/** Changes that take 5 ms each, one every 10 ms from this time on. */
function changes(kinds: readonly Kind[], from = 0): Mutation[] {
  const effects = { import: created(1, []), delete: deleted, disable: disabled, enable: enabled };
  return kinds.map((kind, place) => {
    const began = from + place * 10;
    const acknowledged = began + 5;
    return { kind, node: "node 1", began, acknowledged, wallClock: [began, acknowledged], effect: effects[kind] };
  });
}

/** The entry of a change: 2 ms after its start. */
function entryOf({ kind, began }: Mutation): Entry {
  const action = kind === "import" ? "INSERT" : kind === "delete" ? "DELETE" : "UPDATE";
  return { ...entry(""), action, is_disabled: kind === "disable", time: began + 2 };
}

test.each<[string, kinds: Kind[], entries: number[], lost: number[]]>([
  ["each change needs an entry", ["import", "disable", "enable", "disable"], [0, 1, 2], [3]],
  ["the one after a lost one repeats the one before", ["import", "disable", "enable", "disable"], [0, 1], [2]],
  ["a repeat needs no entry of its own", ["import", "disable", "disable", "enable", "enable"], [0, 1, 3], []],
  ["a repeat is missing with the change before it", ["import", "disable", "disable"], [0], [1, 2]],
  ["nothing is left of a key that was lost", ["import", "disable", "enable"], [], [0, 1, 2]],
  ["a key imported again is not disabled", ["import", "disable", "delete", "import", "disable"], [0, 1, 2, 3], [4]],
])("disabling and enabling: %s", (_, kinds, entries, expected) => {
  const register = new History().register("imported");
  register.mutations.push(...changes(kinds));
  const journal = register.mutations.filter((_change, place) => entries.includes(place)).map(entryOf);

  expect(missing(journal, register).map((one) => register.mutations.indexOf(one))).toEqual(expected);
});

test("a disabling after the restoration of a backup does not stand for one that was lost", () => {
  const register = new History().register("imported");
  const [created, lost, alsoLost] = changes(["import", "disable", "enable"]);
  const [after] = changes(["disable"], 1000);
  const mutations = [created, lost, alsoLost, after].filter((one) => one !== undefined);
  register.mutations.push(...mutations);
  const journal = [created, after].filter((one) => one !== undefined).map(entryOf);

  // The enabling changes nothing without the disabling before it.
  expect(missing(journal, register)).toEqual([lost]);
});

test("a disabling without a response counts neither as missing nor for those before it", () => {
  const register = new History().register("imported");
  const [created, first, second, third] = changes(["import", "disable", "enable", "disable"]);
  const unanswered = third === undefined ? [] : [{ ...third, acknowledged: null, wallClock: undefined }];
  const answered = [created, first, second].filter((one) => one !== undefined);
  register.mutations.push(...answered, ...unanswered);
  const journal = [...answered, ...unanswered].map(entryOf);

  expect(missing(journal, register)).toEqual([]);
  expect(
    missing(
      journal.filter(({ time }) => time !== 22),
      register,
    ),
  ).toEqual([second]);
});
