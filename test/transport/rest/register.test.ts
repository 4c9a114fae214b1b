import type { DescMethodUnary, FileRegistry } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import type { Rpc } from "../../../src/api/rpc.ts";
import { makeRoutes } from "../../../src/transport/rest/register.ts";
import { operator } from "../../support/principal.ts";
import { compileLibrary, methodsOf } from "./library.ts";

let registry: FileRegistry;

beforeAll(async () => {
  registry = await compileLibrary();
});

const rpcOf = (method: DescMethodUnary): Rpc => ({
  method,
  maxRequestBytes: 1,
  admit: async () => operator,
  invoke: async (request) => request,
});

const broken = [
  ["WithoutPattern", "the HTTP rule must have a standard HTTP method and must not have response_body"],
  ["MalformedTemplate", 'malformed or unsupported path template "/v1/{name"'],
  ["UnknownVariable", "the path variable title is neither a string nor an int64 field of the request"],
  ["VariableThroughScalar", "the path variable name.title is neither a string nor an int64 field of the request"],
  ["RepeatedVariable", "the path variable tags is neither a string nor an int64 field of the request"],
  ["MessageVariable", "the path variable part is neither a string nor an int64 field of the request"],
  ["TimeVariable", "the path variable create_time is neither a string nor an int64 field of the request"],
  ["UnknownBody", "keyhold.test.library.Thing has no field title"],
  ["NestedBody", "keyhold.test.library.Thing has no field part.name"],
  ["ResponseBody", "the HTTP rule must have a standard HTTP method and must not have response_body"],
  ["Custom", "the HTTP rule must have a standard HTTP method and must not have response_body"],
  ["Wildcard", 'malformed or unsupported path template "/v1/{name=things/**}"'],
  ["NumberVariable", "the path variable size is neither a string nor an int64 field of the request"],
  ["DeepBindings", "additional_bindings must not be nested"],
  ["SameTwice", "duplicate HTTP bindings for POST /v1/things"],
] as const;

describe("annotations", () => {
  test.each(broken)("%s is refused", (name, message) => {
    const method = methodsOf(registry, "Broken").find((candidate) => candidate.name === name);
    if (method === undefined) throw new Error(`no method ${name}`);
    expect(() => makeRoutes([rpcOf(method)])).toThrow(message);
  });

  test("every broken annotation is in the table", () => {
    expect(broken.map(([name]) => name)).toEqual(methodsOf(registry, "Broken").map(({ name }) => name));
    expect(broken.length).toBeGreaterThan(10);
  });

  test("two RPCs with one path are refused", () => {
    const rpcs = methodsOf(registry).slice(0, 1).map(rpcOf);
    expect(() => makeRoutes([...rpcs, ...rpcs])).toThrow("duplicate HTTP bindings for GET /v1/items");
  });
});
