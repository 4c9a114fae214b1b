import fc from "fast-check";
import { expect, test } from "vitest";
import { identityHeaders, identityOf, metadataHeader } from "../../../src/api/gateways/identity-headers.ts";
import type { Valid } from "../../../src/domain/verdict.ts";

const headersOf = (more: Partial<Parameters<typeof identityHeaders>[0]> = {}) =>
  Object.fromEntries(identityHeaders({ keyId: "id", actorId: "actor", scopes: [], metadata: {}, ...more }));

test("each header is present, empty without a value", () => {
  expect(headersOf({ metadata: { plan_id: "" } })).toEqual({
    "x-keyhold-key-id": "id",
    "x-keyhold-actor-id": "actor",
    "x-keyhold-scopes": "",
    "x-keyhold-metadata-plan-id": "",
  });
});

test.each([
  ["plan_id", "x-keyhold-metadata-plan-id"],
  ["Plan.Id", "x-keyhold-metadata-plan-id"],
  ["a--b__c", "x-keyhold-metadata-a-b-c"],
  ["key-id", "x-keyhold-metadata-key-id"],
])("the metadata %s is in %s", (key, header) => expect(metadataHeader(key)).toBe(header));

test("metadata that the key does not have is empty, also with the name of a property of each object", () => {
  const key = { keyId: "id", actorId: "actor", metadata: { plan: "a" } };
  const { metadata } = identityOf({ key, scopes: [] } as unknown as Valid, ["plan", "other", "constructor"]);
  expect(metadata).toEqual({ plan: "a", other: "", constructor: "" });
});

test("whatever ends a field, or separates what is in one, is encoded", () => {
  expect(headersOf({ actorId: "a\r\nX-Keyhold-Scopes: admin", scopes: ["a b", "c%20d", "ä"] })).toMatchObject({
    "x-keyhold-actor-id": "a%0D%0AX-Keyhold-Scopes:%20admin",
    "x-keyhold-scopes": "a%20b c%2520d %C3%A4",
  });
});

test("every value is visible ASCII, and can be decoded", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.array(fc.string({ minLength: 1 })), (actorId, scopes) => {
      const headers = headersOf({ actorId, scopes });
      expect(headers["x-keyhold-actor-id"]).toMatch(/^[!-~]*$/);
      expect(decodeURIComponent(headers["x-keyhold-actor-id"] ?? "")).toBe(actorId.toWellFormed());
      const decoded = headers["x-keyhold-scopes"] === "" ? [] : headers["x-keyhold-scopes"]?.split(" ");
      expect(decoded?.map(decodeURIComponent)).toEqual(scopes.map((scope) => scope.toWellFormed()));
    }),
    { numRuns: 1000 },
  );
});
