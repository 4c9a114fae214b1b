import { credentials } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { table, useService } from "../support/conformance.ts";
import { bearer } from "../support/guarded.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { http1, http2, type SendRaw } from "../support/raw-http.ts";
import { issue, paths } from "../support/rest.ts";

const suite = useService();
const port = () => new URL(suite.server.url).port;

const HTTP: readonly (readonly [string, SendRaw])[] = [
  ["HTTP/1.1", http1],
  ["HTTP/2", http2],
];

const LOOPBACK_NAMES = [
  "localhost",
  "LOCALHOST",
  "keyhold.localhost",
  "a.b.localhost",
  "127.0.0.1",
  "127.1.2.3",
  "[::1]",
];

const FOREIGN_NAMES = [
  "attacker.example",
  "keyhold.internal",
  "localhost.attacker.example",
  "notlocalhost",
  "127.0.0.1.attacker.example",
  "1127.0.0.1",
  "128.0.0.1",
  "0.0.0.0",
  "10.0.0.1",
  "[::]",
  "[::ffff:10.0.0.1]",
  ".localhost",
];

/** One path of each part of the service. */
const PATHS = [
  paths.issued,
  paths.jwks,
  "/health/alive",
  "/health/ready",
  "/keyhold.v2alpha1.DerivedKeysService/GetJwks?connect=v1&encoding=json&message={}",
  "/nothing/here",
];

describe("without KEYHOLD_AUTH", () => {
  test("everyone on the machine may do everything, with whatever credential", async () => {
    const { rest } = suite;
    const { keyId } = await issue(rest, { scopes: ["keyhold:admin"] });
    for (const headers of [{}, bearer("anything"), { authorization: "Basic eDp5" }]) {
      expect((await rest("PATCH", `${paths.issued}/${keyId}`, { name: "n" }, headers)).status).toBe(200);
    }
  });

  test("the server listens on loopback alone, and says in its log what that means", async () => {
    expect(new URL(suite.server.url).hostname).toBe("127.0.0.1");
    expect(suite.server.log()).toContain(
      "KEYHOLD_AUTH is not set: everyone on this machine may do everything, and no other machine can connect",
    );
  });

  describe.each(table(HTTP))("over %s", (_, send) => {
    test.each(table(LOOPBACK_NAMES))("the server answers to %s, with a port and without", async (name) => {
      for (const host of [name, `${name}:${port()}`, `${name}:1`])
        expect((await send(suite.server.url, { path: paths.issued, host })).status).toBe(200);
    });

    test.each(table(FOREIGN_NAMES))("it refuses a request that calls it %s: a web page may be behind", async (name) => {
      for (const host of [name, `${name}:${port()}`]) {
        const { status, body } = await send(suite.server.url, { path: paths.issued, host });
        expect({ status, body }).toEqual({ status: 403, body: refusedBy("HOST_NOT_ALLOWED") });
      }
    });

    test("and so for every path", async () => {
      for (const path of table(PATHS)) {
        const { status, body } = await send(suite.server.url, { path, host: "attacker.example" });
        expect({ path, status, body }).toEqual({ path, status: 403, body: refusedBy("HOST_NOT_ALLOWED") });
      }
    });
  });

  test.each(table(HTTP))("over %s pages of this machine may call, and no others", async (_, send) => {
    const from = (origin: string) =>
      send(suite.server.url, { path: paths.issued, host: "localhost", headers: [["origin", origin]] });
    for (const origin of table(["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", suite.server.url]))
      expect((await from(origin)).status).toBe(200);
    for (const origin of table(["https://attacker.example", "http://localhost.attacker.example", "null", ""])) {
      const { status, body } = await from(origin);
      expect({ origin, status, body }).toEqual({ origin, status: 403, body: refusedBy("ORIGIN_NOT_ALLOWED") });
    }
  });

  test("no page of another place can rotate a key blindly, though that needs no body", async () => {
    const { keyId } = await issue(suite.rest);
    const rotate = `${paths.issued}/${keyId}:rotate`;
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://attacker.example" })).status).toBe(403);
    await suite.server.restart({ KEYHOLD_CORS_ORIGINS: "https://app.example" });
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://attacker.example" })).status).toBe(403);
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://app.example" })).status).toBe(200);
    await suite.server.restart();
  });

  test("over HTTP/1.1 it refuses two names, and none", async () => {
    const twice = [["Host", "attacker.example"]] as const;
    const answers = [
      await http1(suite.server.url, { path: paths.issued, host: "localhost", headers: twice }),
      await http1(suite.server.url, { path: paths.issued, host: "" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 403]);
  });

  test("a gRPC client that calls it otherwise is told PERMISSION_DENIED", async () => {
    const call = async (authority: string) => {
      const options = { "grpc.default_authority": authority };
      const client = grpcProtocol("gRPC", suite.server.address, credentials.createInsecure(), options);
      const reply = await client.call(ApiKeysService.method.verifyApiKey, { credential: "x" });
      client.close();
      return reply;
    };
    expect(await call("localhost")).toMatchObject({ ok: true });
    expect(await call("attacker.example")).toMatchObject({ ok: false, code: "PERMISSION_DENIED" });
  });
});

describe("with KEYHOLD_AUTH", () => {
  test.each(table(["none", "none,admin-token"]))("%s the server answers to every name, and warns", async (auth) => {
    await suite.server.restart({ KEYHOLD_AUTH: auth });
    for (const [, send] of table(HTTP))
      expect((await send(suite.server.url, { path: paths.issued, host: "keyhold.internal" })).status).toBe(200);
    expect(suite.server.log()).toContain("KEYHOLD_AUTH has none: everyone who reaches this address may do everything");
  });

  test("admin-token the server answers to every name, and asks for a token", async () => {
    await suite.server.restart({ KEYHOLD_AUTH: "admin-token" });
    for (const [, send] of table(HTTP)) {
      const answer = await send(suite.server.url, { path: paths.issued, host: "keyhold.internal" });
      expect({ status: answer.status, challenge: answer.header("www-authenticate") }).toEqual({
        status: 401,
        challenge: expect.stringMatching(/^Bearer realm="keyhold"/),
      });
    }
  });
});

function refusedBy(reason: string) {
  return {
    error: {
      code: 403,
      message: expect.stringContaining("KEYHOLD_AUTH"),
      status: "PERMISSION_DENIED",
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason,
          domain: "keyhold",
          metadata: {},
        },
      ],
    },
  };
}
