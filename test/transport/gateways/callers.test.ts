import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { table } from "../../support/conformance.ts";
import { type Asked, type Fields, FORWARD_AUTH, fields, forwardAuth } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { lastRequest } from "../../support/log-lines.ts";
import { issue } from "../../support/rest.ts";

const TLS = join(import.meta.dirname, "../../support/tls");
const pem = (name: string) => readFileSync(join(TLS, `${name}.pem`), "utf8");
const certificate = (name: string) => ({ cert: pem(`${name}.cert`), key: pem(`${name}.key`) });

const suite = useGuardedService();
const AUTH = { KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAYS: "forward-auth" };

let key: { readonly keyId: string; readonly secret: string };
beforeAll(async () => {
  key = await issue(suite.rest, { scopes: ["keyhold:verify"] });
});

const credential = (): Fields => [["X-Api-Key", key.secret]];
const token = (value: string): Fields => [["X-Keyhold-Authorization", `Bearer ${value}`]];
const verifying = () => suite.token("keyhold:verify");
const lastLine = () => lastRequest(suite.server.log());

/** The credential of the client is always valid, and would be one of a gateway too. */
async function expectRefused(asked: Asked, url = suite.server.url): Promise<void> {
  const answer = await forwardAuth({ url }, { ...asked, headers: [...credential(), ...(asked.headers ?? [])] });
  expect([answer.status, answer.reason]).toEqual([503, "CALLER_NOT_PERMITTED"]);
  expect(answer.body.error.message).toMatch(/^the gateway was rejected: /);
  expect(
    Object.keys(answer.headers).filter((name) => name.startsWith("x-keyhold") || name === "www-authenticate"),
  ).toEqual([]);
  await expect.poll(lastLine).toMatchObject({ status: 503, code: "PERMISSION_DENIED", reason: expect.any(String) });
}

async function expectAllowed(asked: Asked, caller: unknown, url = suite.server.url): Promise<void> {
  const answer = await forwardAuth({ url }, { ...asked, headers: [...credential(), ...(asked.headers ?? [])] });
  expect([answer.status, answer.headers["x-keyhold-key-id"]]).toEqual([200, key.keyId]);
  await expect.poll(lastLine).toMatchObject({ status: 200, code: "OK", caller, key_id: key.keyId, verdict: "VALID" });
}

describe("by token, which is the default", () => {
  beforeAll(() => suite.server.restart(AUTH));

  test("a gateway is known by a token with keyhold:verify, or with a scope that includes it", async () => {
    for (const scope of ["keyhold:verify", "keyhold:admin"] as const) {
      await expectAllowed({ headers: token(suite.token(scope)) }, expect.stringMatching(/^admin-token:/));
    }
  });

  const REJECTED = table<readonly [string, () => Fields]>([
    ["no token", () => []],
    ["an empty token", () => fields("X-Keyhold-Authorization: ")],
    ["an unknown token", () => token("kh_v1_nonsense")],
    ["a token with another scope", () => token(suite.token("keyhold:keys.read"))],
    [
      "a valid token in Authorization, where that of the client is",
      () => fields(`Authorization: Bearer ${verifying()}`),
    ],
    ["two tokens in two fields", () => [...token(verifying()), ...token(verifying())]],
    ["two tokens in one field", () => token(`${verifying()}, Bearer ${verifying()}`)],
    [
      "another scheme",
      () => fields(`X-Keyhold-Authorization: Basic ${Buffer.from(`a:${verifying()}`).toString("base64")}`),
    ],
    ["another spelling of the header", () => fields(`X_Keyhold_Authorization: Bearer ${verifying()}`)],
  ]);
  test.for(REJECTED)("%s is rejected", async ([, headers]) => expectRefused({ headers: headers() }));

  test("a client certificate or the network of the peer is no token", () => expectRefused({ from: "127.0.0.9" }));

  test("the address of a token is that of the gateway, whatever X-Forwarded-For says", async () => {
    await suite.server.restart({ ...AUTH, KEYHOLD_TRUSTED_PROXIES: "127.0.0.0/8" });
    const restricted = { scopes: ["keyhold:verify"], ip_restriction: { allowed_cidrs: ["127.0.0.9"] } };
    const { secret } = await issue(suite.rest, restricted);
    await expectAllowed(
      { from: "127.0.0.9", headers: [...token(secret), ["X-Forwarded-For", "203.0.113.7"]] },
      expect.anything(),
    );
    await expectRefused({ from: "127.0.0.1", headers: [...token(secret), ["X-Forwarded-For", "127.0.0.9"]] });
  });
});

describe("by network", () => {
  beforeAll(() =>
    suite.server.restart({
      ...AUTH,
      KEYHOLD_GATEWAY_CALLERS: "network",
      KEYHOLD_GATEWAY_NETWORKS: "127.0.0.8/30, 10.0.0.0/8",
      KEYHOLD_TRUSTED_PROXIES: "127.0.0.0/8",
    }),
  );

  test("a gateway is known by the address of the peer", () => expectAllowed({ from: "127.0.0.9" }, "network:gateway"));

  test("another peer is refused, whatever it says and has", async () => {
    await expectRefused({
      from: "127.0.0.1",
      headers: fields("X-Forwarded-For: 127.0.0.9", "X-Real-IP: 10.0.0.1"),
    });
    await expectRefused({ from: "127.0.0.12", headers: token(verifying()) });
  });
});

test("any one of several methods suffices", async () => {
  await suite.server.restart({
    ...AUTH,
    KEYHOLD_GATEWAY_CALLERS: "token,network",
    KEYHOLD_GATEWAY_NETWORKS: "127.0.0.9",
  });
  await expectAllowed({ from: "127.0.0.9" }, "network:gateway");
  await expectAllowed({ headers: token(verifying()) }, expect.stringMatching(/^admin-token:/));
  await expectRefused({});
});

const SERVER_TLS = {
  KEYHOLD_TLS_CERT_FILE: join(TLS, "localhost.cert.pem"),
  KEYHOLD_TLS_KEY_FILE: join(TLS, "localhost.key.pem"),
};

describe.each(["the port of the service", "a port of their own"])("by client certificate, on %s", (where) => {
  const url = () =>
    (where.startsWith("a") ? suite.server.gatewayUrl : suite.server.url).replace("127.0.0.1", "localhost");
  const ca = pem("localhost.cert");
  beforeAll(() =>
    suite.server.restart({
      ...AUTH,
      ...SERVER_TLS,
      KEYHOLD_GATEWAY_CALLERS: "mtls",
      KEYHOLD_GATEWAY_CLIENT_CA_FILE: join(TLS, "gateway-ca.cert.pem"),
      ...(where.startsWith("a") && { KEYHOLD_GATEWAY_PORT: "0" }),
    }),
  );

  test("a gateway is known by a certificate of the CA", () =>
    expectAllowed({ tls: { ca, ...certificate("gateway") } }, "mtls:CN=gateway-1, O=Example", url()));

  const REFUSED = table<readonly [string, Asked]>([
    ["no certificate", { tls: { ca } }],
    ["a certificate of another CA", { tls: { ca, ...certificate("localhost") } }],
    ["an expired certificate", { tls: { ca, ...certificate("gateway-expired") } }],
  ]);
  test.for(REFUSED)("%s is refused, and the connection works", async ([, asked]) => expectRefused(asked, url()));

  test("a token alone is refused", () => expectRefused({ tls: { ca }, headers: token(verifying()) }, url()));

  /** Sends one request over a connection, and returns its response and a session to resume. */
  const exchange = async (options: ConnectionOptions) => {
    const { port } = new URL(url());
    const socket: TLSSocket = connect({
      ...options,
      host: "localhost",
      servername: "localhost",
      port: Number(port),
      ca,
    });
    let ticket: Buffer | undefined;
    socket.on("session", (session) => {
      ticket = session;
    });
    await once(socket, "secureConnect");
    const isResumed = socket.isSessionReused();
    socket.end(
      `GET ${FORWARD_AUTH} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${key.secret}\r\nConnection: close\r\n\r\n`,
    );
    const received = await text(socket);
    return { isResumed, status: Number(received.split(" ")[1]), ticket };
  };

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "a resumed session is known by the certificate of the first, over %s",
    async (version) => {
      const only = { minVersion: version, maxVersion: version };
      const [known, unknown] = await Promise.all([exchange({ ...only, ...certificate("gateway") }), exchange(only)]);
      expect([known.status, unknown.status]).toEqual([200, 503]);
      const [again, still] = await Promise.all([
        exchange({ ...only, session: known.ticket }),
        exchange({ ...only, session: unknown.ticket }),
      ]);
      expect([again, still]).toMatchObject([
        { status: 200, isResumed: true },
        { status: 503, isResumed: true },
      ]);
    },
  );
});

describe("with a port of their own", () => {
  beforeAll(() => suite.server.restart({ ...AUTH, KEYHOLD_GATEWAY_PORT: "0" }));
  let headers: Fields;
  beforeEach(() => {
    headers = token(verifying());
  });

  test("it has their endpoint and health, and nothing else", async () => {
    const { gatewayUrl } = suite.server;
    await expectAllowed({ headers }, expect.anything(), gatewayUrl);
    const statusOf = async (path: string, method = "GET") =>
      (await fetch(gatewayUrl + path, { method, headers: { authorization: `Bearer ${suite.token("keyhold:admin")}` } }))
        .status;
    expect(await Promise.all(["/health/alive", "/health/ready"].map((path) => statusOf(path)))).toEqual([200, 200]);
    const others = [
      "/v2alpha1/admin/apiKeys",
      "/openapi.json",
      "/docs",
      "/.well-known/jwks.json",
      "/v2alpha1/introspect",
    ];
    expect(await Promise.all(others.map((path) => statusOf(path)))).toEqual(others.map(() => 404));
    expect(await statusOf("/v2alpha1/admin/apiKeys:verify", "POST")).toBe(404);
    expect(await statusOf("/keyhold.v2alpha1.ApiKeysService/VerifyApiKey", "POST")).toBe(404);
  });

  test("the port of the service does not have their endpoint", async () => {
    const answer = await forwardAuth(suite.server, { headers: [...headers, ...credential()] });
    expect([answer.status, answer.reason]).toEqual([404, "PATH_NOT_FOUND"]);
  });
});
