import { expect, test } from "vitest";
import { readActors, readScopes } from "../../../src/token/oidc/claims.ts";

const CLAIMS = {
  scope: "read write",
  scp: ["read", "write"],
  empty: "",
  spaces: " read  write ",
  realm_access: { roles: ["read"], deep: { er: "write" } },
  "https://example.test/roles": ["read"],
  "dotted.name": ["own"],
  dotted: { name: ["nested"] },
  mixed: ["read", 1],
  number: 7,
  object: { read: true },
  null: null,
};

test.each([
  ["scope", ["read", "write"]],
  ["scp", ["read", "write"]],
  ["empty", []],
  ["spaces", ["read", "write"]],
  ["realm_access.roles", ["read"]],
  ["realm_access.deep.er", ["write"]],
  ["https://example.test/roles", ["read"]],
  ["dotted.name", ["own"]],
  ["mixed", []],
  ["number", []],
  ["object", []],
  ["null", []],
  ["null.roles", []],
  ["missing", []],
  ["realm_access.missing.roles", []],
  ["constructor.name", []],
  ["scope.length", []],
  ["", []],
])("the scopes in %s", (claim, scopes) => {
  expect(readScopes(CLAIMS, claim)).toEqual(scopes);
});

const ACTOR_CLAIMS = {
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
  expect(readActors(ACTOR_CLAIMS, claim)).toEqual(actorIds);
});
