import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { table, useService } from "../support/conformance.ts";
import { answered, type CallRpc } from "../support/protocols/call.ts";
import { callOver } from "../support/protocols/connect.ts";
import { issued } from "../support/protocols/keys.ts";
import { paths, type RestClient } from "../support/rest.ts";

const ORIGIN = "https://console.example";
const OTHER = "https://console.example.evil.example";

const open = useService({ KEYHOLD_CORS_ORIGINS: `https://first.example, ${ORIGIN}` });
const shut = useService();

const VERIFY = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";
const PATHS = [VERIFY, `${paths.keys}:verify`, `${paths.issued}/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10`, paths.jwks];

/** What the clients of a page may send. */
const SENT = [
  ...["authorization", "baggage", "cache-control", "content-type", "connect-protocol-version", "connect-timeout-ms"],
  ...["grpc-timeout", "if-none-match", "traceparent", "tracestate", "x-grpc-web", "x-request-id", "x-user-agent"],
];

function preflight(rest: RestClient, path: string, origin: string, method = "POST") {
  return rest("OPTIONS", path, undefined, {
    origin,
    "access-control-request-method": method,
    "access-control-request-headers": SENT.join(),
  });
}

const list = (text: string | null) => (text ?? "").toLowerCase().split(/\s*,\s*/);

describe("with KEYHOLD_CORS_ORIGINS", () => {
  test.for(table(PATHS))("a preflight for %s from an allowed origin is granted", async (path) => {
    const { status, headers } = await preflight(open.rest, path, ORIGIN);
    expect(status).toBe(204);
    expect(headers.get("access-control-allow-origin")).toBe(ORIGIN);
    expect(list(headers.get("vary"))).toContain("origin");
    expect(list(headers.get("access-control-allow-methods"))).toEqual(
      expect.arrayContaining(["get", "post", "patch", "delete"]),
    );
    expect(list(headers.get("access-control-allow-headers"))).toEqual(expect.arrayContaining(SENT));
    expect(Number(headers.get("access-control-max-age"))).toBeGreaterThanOrEqual(600);
  });

  test.for([OTHER, "null", "http://console.example", `${ORIGIN}:8443`])(
    "a preflight from %s is not granted",
    async (origin) => {
      for (const path of PATHS) {
        const { headers } = await preflight(open.rest, path, origin);
        expect(headers.get("access-control-allow-origin"), path).toBeNull();
      }
    },
  );

  const clients: Readonly<Record<string, (path: string) => CallRpc>> = {
    "Connect in JSON": (baseUrl) =>
      callOver(createConnectTransport({ baseUrl, useBinaryFormat: false, fetch: fromPage })),
    "Connect in binary": (baseUrl) =>
      callOver(createConnectTransport({ baseUrl, useBinaryFormat: true, fetch: fromPage })),
    "gRPC-Web": (baseUrl) => callOver(createGrpcWebTransport({ baseUrl, fetch: fromPage })),
  };

  test.for(table(Object.entries(clients)))(
    "a page of an allowed origin may call by %s and read the headers it needs",
    async ([, client]) => {
      const call = client(open.server.url);
      const { secret: credential } = await issued(call);
      const reply = await call(ApiKeysService.method.verifyApiKey, { credential });
      expect(answered(reply).isValid).toBe(true);
      expect(reply.headers.get("access-control-allow-origin")).toBe(ORIGIN);
      expect(list(reply.headers.get("access-control-expose-headers"))).toEqual(
        expect.arrayContaining([
          ...["grpc-status", "grpc-message", "grpc-status-details-bin"],
          ...["etag", "retry-after", "www-authenticate", "x-request-id"],
        ]),
      );
    },
  );

  test("a page of an allowed origin may read an error", async () => {
    const { status, headers } = await open.rest("POST", `${paths.keys}:verify`, {}, { origin: ORIGIN });
    expect(status).toBe(400);
    expect(headers.get("access-control-allow-origin")).toBe(ORIGIN);
  });

  test("a page of an allowed origin may read that a method is unknown", async () => {
    const { verifyApiKey } = ApiKeysService.method;
    const nothing = { ...verifyApiKey, name: "VerifyNothing" };
    for (const [name, client] of Object.entries(clients)) {
      const reply = await client(open.server.url)(nothing, {});
      expect([reply.headers.get("access-control-allow-origin"), reply], name).toMatchObject([
        ORIGIN,
        { code: "UNIMPLEMENTED" },
      ]);
    }
  });

  test("the JWKS has an ETag that a page may send back", async () => {
    const first = await open.rest("GET", paths.jwks, undefined, { origin: ORIGIN });
    const known = { origin: ORIGIN, "if-none-match": first.headers.get("etag") ?? "" };
    const again = await open.rest("GET", paths.jwks, undefined, known);
    expect([again.status, again.headers.get("access-control-allow-origin")]).toEqual([304, ORIGIN]);
  });

  test("credentials are not allowed", async () => {
    const { headers } = await preflight(open.rest, VERIFY, ORIGIN);
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  });
});

/** Sends what a browser sends for a page of the origin. */
const fromPage: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("origin", ORIGIN);
  return fetch(input, { ...init, headers });
};

test("without KEYHOLD_CORS_ORIGINS no page may call", async () => {
  for (const path of PATHS) {
    const { status, headers } = await preflight(shut.rest, path, ORIGIN);
    expect(status, path).toBeGreaterThanOrEqual(400);
    expect(
      [...headers.keys()].filter((name) => name.startsWith("access-control-")),
      path,
    ).toEqual([]);
  }
});
