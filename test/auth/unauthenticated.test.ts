import { once } from "node:events";
import { connect, constants } from "node:http2";
import { Code } from "@connectrpc/connect";
import { credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { table, useService } from "../support/conformance.ts";
import { bearer } from "../support/guarded.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { http1, http2, type RawRequest, type SendRaw } from "../support/raw-http.ts";
import { issue, paths } from "../support/rest.ts";
import { callGrpc, frame } from "../support/wire.ts";

const suite = useService();
const verifyPath = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";
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
  "128.0.0.1",
  "0.0.0.0",
  "10.0.0.1",
  "[::]",
  "[::ffff:10.0.0.1]",
  ".localhost",
];

/** One path for each part of the service. */
const PATHS = [
  paths.issued,
  paths.jwks,
  "/health/alive",
  "/health/ready",
  "/keyhold.v2alpha1.DerivedKeysService/GetJwks?connect=v1&encoding=json&message={}",
  "/nothing/here",
];

describe("without KEYHOLD_AUTH", () => {
  test("every call from this machine is allowed, with any credential", async () => {
    const { rest } = suite;
    const { keyId } = await issue(rest, { scopes: ["keyhold:admin"] });
    for (const headers of [{}, bearer("anything"), { authorization: "Basic eDp5" }]) {
      expect((await rest("PATCH", `${paths.issued}/${keyId}`, { name: "n" }, headers)).status).toBe(200);
    }
  });

  test("the server listens only on loopback and logs a warning", async () => {
    expect(new URL(suite.server.url).hostname).toBe("127.0.0.1");
    expect(suite.server.log()).toContain("every program on this machine has full access: set KEYHOLD_AUTH=admin-token");
  });

  describe.each(table(HTTP))("over %s", (_, send) => {
    test.each(table(LOOPBACK_NAMES))("the server answers to %s, with a port and without", async (name) => {
      for (const host of [name, `${name}:${port()}`, `${name}:1`])
        expect((await send(suite.server.url, { path: paths.issued, host })).status).toBe(200);
    });

    test.each(table(FOREIGN_NAMES))("it refuses the Host %s, which a web page may have sent", async (name) => {
      for (const host of [name, `${name}:${port()}`]) {
        const { status, body } = await send(suite.server.url, { path: paths.issued, host });
        expect({ status, body }).toEqual({ status: 403, body: refusedBy("HOST_NOT_ALLOWED") });
      }
    });

    test("it refuses a foreign Host on every path", async () => {
      for (const path of table(PATHS)) {
        const { status, body } = await send(suite.server.url, { path, host: "attacker.example" });
        expect({ path, status, body }).toEqual({ path, status: 403, body: refusedBy("HOST_NOT_ALLOWED") });
      }
    });
  });

  test.each(table(HTTP))("over %s only pages of this machine may call", async (_, send) => {
    const from = (origin: string) =>
      send(suite.server.url, { path: paths.issued, host: "localhost", headers: [["origin", origin]] });
    for (const origin of table(["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", suite.server.url]))
      expect((await from(origin)).status).toBe(200);
    for (const origin of table(["https://attacker.example", "http://localhost.attacker.example", "null", ""])) {
      const { status, body } = await from(origin);
      expect({ origin, status, body }).toEqual({ origin, status: 403, body: refusedBy("ORIGIN_NOT_ALLOWED") });
    }
  });

  test("a page of another origin cannot rotate a key blindly, although that needs no body", async () => {
    const { keyId } = await issue(suite.rest);
    const rotate = `${paths.issued}/${keyId}:rotate`;
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://attacker.example" })).status).toBe(403);
    await suite.server.restart({ KEYHOLD_CORS_ORIGINS: "https://app.example" });
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://attacker.example" })).status).toBe(403);
    expect((await suite.rest("POST", rotate, undefined, { origin: "https://app.example" })).status).toBe(200);
    await suite.server.restart();
  });

  test("over HTTP/1.1 it refuses two, no, and malformed Host headers", async () => {
    const twice = [["Host", "attacker.example"]] as const;
    const answers = [
      await http1(suite.server.url, { path: paths.issued, host: "localhost", headers: twice }),
      await http1(suite.server.url, { path: paths.issued, host: "" }),
      await http1(suite.server.url, { path: paths.issued, host: "1127.0.0.1" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400]);
  });

  test.each(["application/grpc", "application/grpc-web+proto"])(
    "a refused Host or origin is PERMISSION_DENIED with its reason for %s",
    async (type) => {
      const refused = [
        [{ ":authority": "attacker.example" }, "HOST_NOT_ALLOWED"],
        [{ origin: "https://attacker.example" }, "ORIGIN_NOT_ALLOWED"],
      ] as const;
      for (const path of ["/keyhold.v2alpha1.ApiKeysService/VerifyApiKey", "/nothing/here"]) {
        for (const [headers, reason] of refused) {
          const answer = await callGrpc(suite.server.url, path, frame(Buffer.alloc(0)), {
            "content-type": type,
            ...headers,
          });
          expect(answer, path).toMatchObject({ http: 200, status: Code.PermissionDenied, reason });
          expect(answer.message).toContain("KEYHOLD_AUTH");
        }
      }
    },
  );

  test.each(table(["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"]))(
    "it refuses a request with the proxy header %s, since its caller is unknown",
    async (name) => {
      for (const [, send] of table(HTTP)) {
        const headers = [[name.toLowerCase(), "203.0.113.7"]] as const;
        const { status, body } = await send(suite.server.url, { path: paths.issued, host: "localhost", headers });
        expect({ status, body }).toEqual({ status: 403, body: refusedBy("PROXY_NOT_ALLOWED") });
      }
    },
  );

  test("it answers to configured names", async () => {
    await suite.server.restart({ KEYHOLD_ALLOWED_HOSTS: "Keyhold.test,*.dev.test" });
    const statusOf = async (host: string) => (await http1(suite.server.url, { path: paths.issued, host })).status;
    for (const host of table(["keyhold.test", "KEYHOLD.test:80", "a.dev.test", "a.b.dev.test:1", "localhost"]))
      expect([host, await statusOf(host)]).toEqual([host, 200]);
    for (const host of table(["a.keyhold.test", "dev.test", ".dev.test", "xdev.test", "keyhold.test.example"]))
      expect([host, await statusOf(host)]).toEqual([host, 403]);
    await suite.server.restart();
  });

  test("it ends a refused gRPC call even if the client keeps sending", async () => {
    const session = connect(suite.server.url);
    onTestFinished(() => session.destroy());
    const head = { ":method": "POST", ":path": verifyPath, ":authority": "attacker.example" };
    const stream = session.request({ ...head, "content-type": "application/grpc" }, { endStream: false });
    const [[headers, flags]] = await Promise.all([once(stream, "response"), once(stream.resume(), "close")]);
    expect(headers).toMatchObject({ "grpc-status": "7" });
    expect(flags & constants.NGHTTP2_FLAG_END_STREAM).toBeTruthy();
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  test("a gRPC client with another authority gets PERMISSION_DENIED", async () => {
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

describe.each(table(["none", "none,admin-token"]))("with KEYHOLD_AUTH=%s", (auth) => {
  const KEYHOLD_ALLOWED_HOSTS = "keyhold.internal,*.cluster.local";
  beforeAll(() => suite.server.restart({ KEYHOLD_AUTH: auth, KEYHOLD_ALLOWED_HOSTS }));
  afterAll(() => suite.server.restart());

  test("the server logs a warning", () => {
    expect(suite.server.log()).toContain(
      "everyone who can reach the port has full access: set KEYHOLD_AUTH=admin-token",
    );
  });

  describe.each(table(HTTP))("over %s", (_, send) => {
    const answered = ["10.0.0.1", "[fd00::1]", "keyhold.internal", "a.b.cluster.local", "localhost", "127.0.0.1"];
    test.each(table(answered))("the server answers to %s, and to its pages", async (name) => {
      for (const host of [name, `${name}:4420`]) {
        const from = (headers: RawRequest["headers"] = []) =>
          send(suite.server.url, { path: paths.issued, host, headers });
        expect((await from()).status).toBe(200);
        expect((await from([["origin", `http://${host}`]])).status).toBe(200);
        expect((await from([["x-forwarded-for", "203.0.113.7"]])).status).toBe(200);
      }
    });

    const foreign = ["attacker.example", "keyhold.internal.attacker.example", "cluster.local", "0x7f.1", "2130706433"];
    test.each(table(foreign))("it refuses the Host %s, which a web page may have sent", async (host) => {
      const { status, body } = await send(suite.server.url, { path: paths.issued, host });
      expect({ status, body }).toEqual({ status: 403, body: refusedBy("HOST_NOT_ALLOWED") });
    });

    const pages = [
      ["keyhold.internal", "https://attacker.example"],
      ["keyhold.internal", "http://localhost:3000"],
      ["keyhold.internal:4420", "http://keyhold.internal"],
      ["10.0.0.1:4420", "http://10.0.0.2:4420"],
      ["10.0.0.1", "null"],
      ["localhost", "http://10.0.0.1"],
    ] as const;
    test.each(table(pages))("with the Host %s it refuses a page of %s", async (host, origin) => {
      const headers = [["origin", origin]] as const;
      const { status, body } = await send(suite.server.url, { path: paths.issued, host, headers });
      expect({ status, body }).toEqual({ status: 403, body: refusedBy("ORIGIN_NOT_ALLOWED") });
    });
  });

  test("no page creates an admin key by DNS rebinding, or rotates one by a POST without a body", async () => {
    const { keyId } = await issue(suite.rest);
    const before = (await suite.rest("GET", paths.issued)).body;
    const rebound = { host: "attacker.example:4420", headers: [["origin", "http://attacker.example:4420"]] } as const;
    const foreign = { host: "10.0.0.1:4420", headers: [["origin", "https://attacker.example"]] } as const;
    for (const from of [rebound, foreign]) {
      for (const path of [paths.issued, `${paths.issued}/${keyId}:rotate`])
        expect((await http1(suite.server.url, { path, method: "POST", ...from })).status).toBe(403);
    }
    expect((await suite.rest("GET", paths.issued)).body).toEqual(before);
  });
});

describe("with KEYHOLD_AUTH", () => {
  test("admin-token the server answers to every name and requires a token", async () => {
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
