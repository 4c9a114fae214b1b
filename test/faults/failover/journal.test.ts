import { expect, test } from "vitest";
import { History, type Mutation } from "../history.ts";
import { rotated } from "../register.ts";
import { type Entry, missing } from "./journal.ts";

const NAME = "key 1";

function rotation(began: number, hint: string): Mutation {
  return { kind: "rotate", node: "node 1", began, acknowledged: began + 5, hint, effect: rotated(began, false) };
}

function entry(hint: string): Entry {
  return { name: NAME, action: "UPDATE", scopes: "", is_revoked: false, hint };
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
