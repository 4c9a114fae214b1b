import { expect, test } from "vitest";
import { readActors } from "../../../src/token/oidc/actors.ts";

const CLAIMS = {
  actor: "team 7",
  actors: ["team_7", "team_8", "team_7"],
  none: [],
  empty: "",
  any: "*",
  with_any: ["team_7", "*"],
  nested: { actors: ["team_7"] },
  mixed: ["team_7", 1],
  number: 7,
  object: { "*": true },
  null: null,
  unstorable: ["team\0", "\ud800", "", "team_7"],
};

test.each([
  ["actor", ["team 7"]],
  ["actors", ["team_7", "team_8"]],
  ["none", []],
  ["empty", []],
  ["any", null],
  ["with_any", null],
  ["nested.actors", ["team_7"]],
  ["mixed", []],
  ["number", []],
  ["object", []],
  ["null", []],
  ["missing", []],
  ["toString", []],
  ["unstorable", ["team_7"]],
])("the actors in %s", (claim, actorIds) => {
  expect(readActors(CLAIMS, claim)).toEqual(actorIds);
});
