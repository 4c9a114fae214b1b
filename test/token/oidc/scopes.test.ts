import { expect, test } from "vitest";
import { readScopes } from "../../../src/token/oidc/scopes.ts";

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
])("%s", (claim, scopes) => {
  expect(readScopes(CLAIMS, claim)).toEqual(scopes);
});
