import { create, type DescMethodUnary, type FileRegistry } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import cors from "@fastify/cors";
import Fastify from "fastify";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DerivedKeysService, JwksSchema } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import type { Rpc } from "../../../src/api/rpc.ts";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { makeRoutes, registerRest } from "../../../src/transport/rest/register.ts";
import { answerErrors } from "../../../src/transport/wire/error-handler.ts";
import { BodyBudget, bodyReader } from "../../../src/transport/wire/request-body.ts";
import { operator } from "../../support/principal.ts";
import { send } from "./client.ts";
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
  ["WithoutPattern", "an HTTP rule without a method, with one of its own, or with response_body"],
  ["MalformedTemplate", 'malformed or unsupported path template "/v1/{name"'],
  ["UnknownVariable", "the path variable title is no string of the request"],
  ["VariableThroughScalar", "the path variable name.title is no string of the request"],
  ["RepeatedVariable", "the path variable tags is no string of the request"],
  ["MessageVariable", "the path variable part is no string of the request"],
  ["TimeVariable", "the path variable create_time is no string of the request"],
  ["UnknownBody", "keyhold.test.library.Thing has no field title"],
  ["NestedBody", "keyhold.test.library.Thing has no field part.name"],
  ["ResponseBody", "an HTTP rule without a method, with one of its own, or with response_body"],
  ["Custom", "an HTTP rule without a method, with one of its own, or with response_body"],
  ["Wildcard", 'malformed or unsupported path template "/v1/{name=things/**}"'],
  ["NumberVariable", "the path variable size is no string of the request"],
  ["DeepBindings", "additional_bindings within additional_bindings"],
  ["SameTwice", "two bindings of POST /v1/things"],
] as const;

const readBody = bodyReader(new BodyBudget(2 ** 26));

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
    expect(() => makeRoutes([...rpcs, ...rpcs])).toThrow("two bindings of GET /v1/items");
  });

  test("a service without RPCs has no routes", async () => {
    const fastify = Fastify();
    registerRest(fastify, makeRoutes([]), readBody);
    await fastify.ready();
    expect(fastify.hasRoute({ method: "GET", url: "/*" })).toBe(false);
  });
});

test("REST works beside Connect, gRPC, CORS and plain routes", async () => {
  const fastify = Fastify({ serverFactory: (listener) => new ListenerServer({ limits: defaultLimits }, listener) });
  onTestFinished(() => fastify.close());
  const { getJwks } = DerivedKeysService.method;
  const jwks = create(JwksSchema, { keys: [{ kid: "k1" }] });
  await fastify.register(cors, { origin: "https://example.com" });
  fastify.get("/health/alive", async () => ({ status: "ok" }));
  const rpcs: Rpc[] = [
    {
      method: getJwks,
      maxRequestBytes: 1,
      admit: async () => operator,
      invoke: async () => jwks,
    },
    ...methodsOf(registry).map(rpcOf),
  ];
  answerErrors(fastify);
  registerRest(fastify, makeRoutes(rpcs), readBody);
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => router.rpc(getJwks, async () => jwks),
  });
  const baseUrl = await fastify.listen({ host: "127.0.0.1", port: 0 });
  const port = Number(new URL(baseUrl).port);

  const connect = createClient(DerivedKeysService, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
  const grpc = createClient(DerivedKeysService, createGrpcTransport({ baseUrl }));
  expect((await connect.getJwks({})).keys[0]?.kid).toBe("k1");
  expect((await grpc.getJwks({})).keys[0]?.kid).toBe("k1");
  expect((await send(port, "GET /v1/items/a")).json().name).toBe("a");
  expect((await send(port, "GET /health/alive")).json()).toEqual({ status: "ok" });
  expect((await send(port, "GET /health/nothing")).json().error.status).toBe("NOT_FOUND");
  const headers = { origin: "https://example.com", "access-control-request-method": "PATCH" };
  const preflight = await send(port, "OPTIONS /v1/items/a", { headers });
  expect(preflight.status).toBe(204);
  expect(preflight.headers["access-control-allow-origin"]).toBe("https://example.com");
});
