import { describe, expect, test } from "vitest";
import { PathRouter, parsePathTemplate } from "../../../src/transport/rest/path-router.ts";

const bindings = [
  "GET /v1/items",
  "POST /v1/items",
  "POST /v1/items:batch",
  "GET /v1/items/{id}",
  "POST /v1/items/{id}:rotate",
  "POST /v1/items/{id}:revoke",
  "POST /v1/items/{id}",
  "GET /v1/items/featured",
  "PATCH /v1/items/{id}/parts/{part}",
  "GET /v1/{collection=items}/{id}/parts",
  "GET /v1/{tree}/leaves",
  "HEAD /v1/heads",
] as const;

function router(...lines: readonly string[]): PathRouter<string> {
  const made = new PathRouter<string>();
  for (const line of lines) {
    const [method = "", template = ""] = line.split(" ");
    made.add(method, parsePathTemplate(template), line);
  }
  return made;
}

const found: readonly (readonly [request: string, binding: (typeof bindings)[number], segments: readonly string[]])[] =
  [
    ["GET /v1/items", "GET /v1/items", ["v1", "items"]],
    ["HEAD /v1/items", "GET /v1/items", ["v1", "items"]],
    ["POST /v1/items:batch", "POST /v1/items:batch", ["v1", "items"]],
    ["GET /v1/items/a", "GET /v1/items/{id}", ["v1", "items", "a"]],
    ["GET /v1/%69tems/a", "GET /v1/items/{id}", ["v1", "items", "a"]],
    ["GET /v1/items/a%2Fb", "GET /v1/items/{id}", ["v1", "items", "a/b"]],
    ["GET /v1/items/featured", "GET /v1/items/featured", ["v1", "items", "featured"]],
    ["POST /v1/items/featured", "POST /v1/items/{id}", ["v1", "items", "featured"]],
    ["POST /v1/items/a:rotate", "POST /v1/items/{id}:rotate", ["v1", "items", "a"]],
    ["POST /v1/items/a:revoke", "POST /v1/items/{id}:revoke", ["v1", "items", "a"]],
    ["POST /v1/items/a%3Ab:rotate", "POST /v1/items/{id}:rotate", ["v1", "items", "a:b"]],
    ["POST /v1/items/a:b:rotate", "POST /v1/items/{id}:rotate", ["v1", "items", "a:b"]],
    ["POST /v1/items/a%3Arotate", "POST /v1/items/{id}", ["v1", "items", "a:rotate"]],
    ["POST /v1/items/a:unknown", "POST /v1/items/{id}", ["v1", "items", "a:unknown"]],
    ["GET /v1/items/:", "GET /v1/items/{id}", ["v1", "items", ":"]],
    ["GET /v1/items/:unknown", "GET /v1/items/{id}", ["v1", "items", ":unknown"]],
    ["POST /v1/items/:rotate", "POST /v1/items/{id}", ["v1", "items", ":rotate"]],
    ["GET /v1/items/..", "GET /v1/items/{id}", ["v1", "items", ".."]],
    ["PATCH /v1/items/a/parts/b", "PATCH /v1/items/{id}/parts/{part}", ["v1", "items", "a", "parts", "b"]],
    ["GET /v1/items/a/parts", "GET /v1/{collection=items}/{id}/parts", ["v1", "items", "a", "parts"]],
    ["GET /v1/beeches/leaves", "GET /v1/{tree}/leaves", ["v1", "beeches", "leaves"]],
    ["GET /v1/items/leaves", "GET /v1/items/{id}", ["v1", "items", "leaves"]],
    ["GET /v1/items/a%2Fb%20%C3%A4%00%252F+", "GET /v1/items/{id}", ["v1", "items", "a/b ä\0%2F+"]],
    ["HEAD /v1/heads", "HEAD /v1/heads", ["v1", "heads"]],
  ];

const wrongMethod = [
  ["DELETE /v1/items", ["GET", "HEAD", "POST"]],
  ["GET /v1/items:batch", ["POST"]],
  ["GET /v1/items/a:rotate", ["POST"]],
  ["DELETE /v1/items/featured", ["GET", "HEAD", "POST"]],
  ["POST /v1/oaks/leaves", ["GET", "HEAD"]],
  ["GET /v1/heads", ["HEAD"]],
] as const;

const unknown = [
  ..."/ /v1 /v1/ /v1/items/ /v1//items /v1/items/a/ /v1/items//parts /v1/item /v1/itemsx /V1/items".split(" "),
  ..."/v1/items%2Fa /v1/items%3Abatch /v1/items:other /v1//leaves /v1/%/x /v1/%ff /v1/items/% /v1/items/%ff".split(" "),
];

const nearest = [
  ["POST /v1/items%3Abatch", "/v1/items:batch"],
  ["POST /v1/items:btach", "/v1/items:batch"],
  ["DELETE /v1/items/a:rotat", "/v1/items/{id}:rotate"],
  ["PUT /v1/items/a%3arevoke", "/v1/items/{id}:revoke"],
  ["GET /v1/items/", "/v1/items"],
  ["GET /v1/items/a/", "/v1/items/{id}"],
  ["POST /v1/items:batch/", "/v1/items:batch"],
  ["POST /v1/items:nothing", undefined],
  ["GET /v1/nothing", undefined],
] as const;

describe("the path router", () => {
  const all = router(...bindings);

  test.each(found)("%s", (request, value, segments) => {
    const [method = "", path = ""] = request.split(" ");
    expect(all.find(method, path)).toEqual({ kind: "found", value, segments });
  });

  test.each(wrongMethod)("%s has another method", (request, allowed) => {
    const [method = "", path = ""] = request.split(" ");
    expect(all.find(method, path)).toEqual({ kind: "wrong-method", allowed });
  });

  test.each(unknown)("GET %s is unknown", (path) => {
    expect(all.find("GET", path)).toMatchObject({ kind: "unknown" });
  });

  test.each(nearest)("%s is unknown, and %s is near", (request, near) => {
    const [method = "", path = ""] = request.split(" ");
    expect(all.find(method, path)).toEqual({ kind: "unknown", nearest: near });
  });

  test("the order of additions does not matter", () => {
    const reversed = router(...bindings.toReversed());
    for (const [request] of found) {
      const [method = "", path = ""] = request.split(" ");
      expect(reversed.find(method, path), request).toEqual(all.find(method, path));
    }
  });

  test("duplicate HTTP bindings for the same shape are refused", () => {
    expect(() => router("GET /v1/{a}", "GET /v1/{b}")).toThrow("duplicate HTTP bindings for GET /v1/{b}");
    expect(() => router("GET /v1/{a}:x", "GET /v1/{a}", "POST /v1/{a}", "GET /v1/{a=b}")).not.toThrow();
  });

  test("the list of samples is complete", () => {
    expect(found.length).toBeGreaterThan(20);
    expect(wrongMethod.length).toBeGreaterThan(5);
    expect(unknown.length).toBeGreaterThan(15);
  });
});
