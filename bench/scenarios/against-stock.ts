import { resolve } from "node:path";
import { type DescMethodUnary, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { grpcLoad, pathOf } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS, PROTO_HEADERS } from "../load/http-load.ts";
import { type LoadRequest, writeRequests } from "../load/requests.ts";
import { get, PATHS, post, times } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";

/** Number of keys that the load cycles through. */
const KEYS = 500;

const STOCK = resolve(import.meta.dirname, "../baseline/stock.ts");

const { createIssuedApiKey, getIssuedApiKey, listIssuedApiKeys, updateIssuedApiKey } = IssuedApiKeysService.method;

type Protocol = "rest" | "connect-json" | "connect-binary" | "grpc";

interface Call {
  readonly name: string;
  readonly method: DescMethodUnary;
  request(keyId: string): JsonObject;
  rest(keyId: string): LoadRequest;
  readonly protocols: readonly Protocol[];
}

const PROTOCOL_NAMES: Readonly<Record<Protocol, string>> = {
  rest: "REST",
  "connect-json": "Connect JSON",
  "connect-binary": "Connect binary",
  grpc: "gRPC",
};

const CALLS: readonly Call[] = [
  {
    name: "get",
    method: getIssuedApiKey,
    request: (key_id) => ({ key_id }),
    rest: (keyId) => ({ method: "GET", path: `${PATHS.issued}/${keyId}` }),
    protocols: ["rest", "connect-json", "connect-binary", "grpc"],
  },
  {
    name: "list",
    method: listIssuedApiKeys,
    request: () => ({ page_size: 50 }),
    rest: () => ({ method: "GET", path: `${PATHS.issued}?page_size=50` }),
    protocols: ["rest", "connect-json", "grpc"],
  },
  {
    name: "update",
    method: updateIssuedApiKey,
    request: (key_id) => ({ issued_api_key: { key_id, name: KEY.name } }),
    rest: (keyId) => ({ method: "PATCH", path: `${PATHS.issued}/${keyId}`, body: JSON.stringify({ name: KEY.name }) }),
    protocols: ["rest", "connect-json"],
  },
  {
    name: "jwks",
    method: DerivedKeysService.method.getJwks,
    request: () => ({}),
    rest: () => ({ method: "GET", path: PATHS.jwks }),
    protocols: ["rest", "connect-json", "grpc"],
  },
];

/** Calls that Fastify and Connect serve, compared with stock Fastify and Connect: the cost of Keyhold's transport around them. */
export const againstStockScenarios: readonly Scenario[] = [
  ...scenariosOf("stock", "each with its log", { subject: populated(), baseline: populated(STOCK) }),
  ...scenariosOf(
    "silent",
    "both without a log",
    { subject: populated(null, "warn"), baseline: populated(STOCK, "warn") },
    ["get", "jwks"],
  ),
];

function scenariosOf(group: string, log: string, servers: Servers, only = CALLS.map(({ name }) => name)): Scenario[] {
  return CALLS.filter(({ name }) => only.includes(name)).flatMap((call) =>
    call.protocols.map((protocol) => ({
      name: `${group}-${protocol}-${call.name}`,
      group,
      work: `${call.method.name}, ${PROTOCOL_NAMES[protocol]}`,
      against: `the same implementation over stock ${protocol === "rest" ? "Fastify" : "connect-fastify"}, ${log}`,
      unit: "requests/s",
      judged: "ratio",
      prepare: async (fixture) => ({
        subject: await LOADS[protocol](fixture, await servers.subject(fixture), call),
        baseline: await LOADS[protocol](fixture, await servers.baseline(fixture), call),
      }),
    })),
  );
}

type Servers = Readonly<Record<"subject" | "baseline", (fixture: Fixture) => Promise<PopulatedServer>>>;

/** A server with keys in its own database. */
interface PopulatedServer {
  readonly url: string;
  readonly http2Url: string;
  readonly keyIds: readonly string[];
}

/** Starts the service, or the baseline in this script. */
function populated(script: string | null = null, logLevel = "info"): (fixture: Fixture) => Promise<PopulatedServer> {
  return once(async (fixture) => {
    // The benchmark exceeds the rate at which one client may read the JWKS.
    const environment = { KEYHOLD_LOG_LEVEL: logLevel, KEYHOLD_PUBLIC_RATE: "off" };
    const { url } = (await install(fixture, { environment, ...(script !== null && { script: [script] }) })).server;
    const http2Url = script === null ? url : (await get(`${url}/http2`)).url;
    return { url, http2Url, keyIds: await createKeys(url) };
  });
}

function createKeys(url: string): Promise<string[]> {
  return times(KEYS, async () => (await post(url + pathOf(createIssuedApiKey), KEY)).issued_api_key.key_id);
}

async function http(
  fixture: Fixture,
  { url }: PopulatedServer,
  requests: readonly LoadRequest[],
  headers: Readonly<Record<string, string>>,
): Promise<Measure> {
  return httpLoad(fixture, { url, headers, bodies: await writeRequests(fixture, requests), connections: CONNECTIONS });
}

const LOADS: Readonly<Record<Protocol, (fixture: Fixture, server: PopulatedServer, call: Call) => Promise<Measure>>> = {
  rest: (fixture, server, { rest }) => http(fixture, server, server.keyIds.map(rest), JSON_HEADERS),
  "connect-json": (fixture, server, { method, request }) => {
    const body = (keyId: string) => JSON.stringify(request(keyId));
    return http(
      fixture,
      server,
      server.keyIds.map((keyId) => ({ method: "POST", path: pathOf(method), body: body(keyId) })),
      JSON_HEADERS,
    );
  },
  "connect-binary": (fixture, server, { method, request }) => {
    const body = (keyId: string) => toBinary(method.input, fromJson(method.input, request(keyId)));
    return http(
      fixture,
      server,
      server.keyIds.map((keyId) => ({ method: "POST", path: pathOf(method), body: body(keyId) })),
      PROTO_HEADERS,
    );
  },
  grpc: (fixture, { http2Url, keyIds: [keyId = ""] }, { method, request }) => {
    return grpcLoad(fixture, http2Url, {
      method,
      request: fromJson(method.input, request(keyId)),
      isExpected: () => true,
    });
  },
};
