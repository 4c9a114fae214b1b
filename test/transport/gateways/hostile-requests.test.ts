import { connect } from "node:http2";
import { beforeAll, describe, expect, test } from "vitest";
import { revoke, table } from "../../support/conformance.ts";
import { FORWARD_AUTH } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { issue } from "../../support/rest.ts";
import { observeHttp1 } from "../fast-path/observe.ts";

/** Requests that a client may bring a gateway to send, byte by byte. Each verdict must belong to one request, and none to a part of one. */

const suite = useGuardedService(() => ({ KEYHOLD_GATEWAYS: "forward-auth" }));

let valid: { readonly keyId: string; readonly secret: string };
let revoked: string;
beforeAll(async () => {
  const [one, other] = await Promise.all([
    issue(suite.rest, { actor_id: "team_1", scopes: ["read"] }),
    issue(suite.rest),
  ]);
  await revoke(suite.rest, other.keyId);
  [valid, revoked] = [one, other.secret];
});

/** Returns a request to the endpoint with the token of the gateway; `\r\n` ends each line. */
function request(lines: readonly string[], { first = `GET ${FORWARD_AUTH} HTTP/1.1`, body = "" } = {}): string {
  const token = `X-Keyhold-Authorization: Bearer ${suite.token("keyhold:verify")}`;
  return [first, "Host: localhost", token, ...lines, "", body].join("\r\n");
}
const bearer = () => `Authorization: Bearer ${valid.secret}`;
const bearerOf = (credential: string) => `Authorization: Bearer ${credential}`;

/** A request of another client that is hidden in a body. */
const hidden = () => request([bearer()]);

const AS_POST = `POST ${FORWARD_AUTH} HTTP/1.1`;

/** What is sent, and the status of each response until the connection is closed. */
type Row = readonly [name: string, sent: () => string, statuses: readonly number[]];

const closing = (text: string): string =>
  text.replace("Host: localhost\r\n", "Host: localhost\r\nConnection: close\r\n");
const last = () => closing(request([bearer()]));

const post = (lines: readonly string[], body: string) => request(lines, { first: AS_POST, body });
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n`;
const CHUNKED = "Transfer-Encoding: chunked";
const lengthOf = (text: string) => `Content-Length: ${text.length}`;

const ROWS = table<Row>([
  // One request, one verdict.
  [
    "pipelined requests",
    () => request([bearer()]) + request([bearerOf(revoked)]) + request([]) + request([bearer()]) + last(),
    [200, 401, 401, 200, 200],
  ],
  ["a body with a request", () => post([bearerOf(revoked), lengthOf(hidden())], hidden()) + last(), [401, 200]],
  [
    "a chunked body with a request",
    () => post([bearerOf(revoked), CHUNKED], `${chunk(hidden())}\r\n`) + last(),
    [401, 200],
  ],
  [
    "a body of GET with a request",
    () => request([bearerOf(revoked), lengthOf(hidden())], { body: hidden() }) + last(),
    [401, 200],
  ],
  [
    "a credential in the trailer of a body",
    () => post([CHUNKED], `${chunk("a")}${bearer()}\r\n\r\n`) + last(),
    [401, 200],
  ],
  [
    "Expect: 100-continue",
    () => post([bearer(), "Expect: 100-continue", "Content-Length: 3"], "abc") + last(),
    [100, 200, 200],
  ],
  ["an upgrade", () => request([bearer(), "Connection: upgrade, close", "Upgrade: websocket"]), [200]],
  [
    "an upgrade to HTTP/2",
    () => request([bearer(), "Connection: upgrade, close", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]),
    [200],
  ],
  // Ambiguous framing: never a verdict, and never a second request.
  ...[
    ["Content-Length: 3", "Transfer-Encoding: chunked"],
    ["Content-Length: 3", "Content-Length: 4"],
    ["Content-Length: 3, 4"],
    ["Content-Length: +3"],
    ["Content-Length: 0x3"],
    ["Content-Length: -1"],
    ["Transfer-Encoding: chunked, identity"],
    ["Transfer-Encoding: xchunked"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ["Transfer-Encoding : chunked"],
    ["Transfer-Encoding:\u000bchunked"],
  ].map(
    (lines): Row => [`framing ${JSON.stringify(lines)}`, () => post([bearer(), ...lines], `abc${hidden()}`), [400]],
  ),
  // Malformed fields: one that Keyhold would read otherwise than the gateway.
  ...[
    ["a folded line", () => [`Authorization: Bearer\r\n ${valid.secret}`]],
    ["a folded line after a credential", () => [`${bearer()}\r\n\tX-Api-Key: a`]],
    ["a space before the colon", () => [`Authorization : Bearer ${valid.secret}`]],
    ["NUL in a credential", () => [`${bearer()}\u0000`]],
    ["NUL in another field", () => [bearer(), "X-Other: a\u0000b"]],
    ["a carriage return alone", () => [bearer(), "X-Other: a\rX-Api-Key: b"]],
    ["a field without a name", () => [bearer(), ": a"]],
    ["a field without a colon", () => [bearer(), "X-Other"]],
    ["two hosts", () => [bearer(), "Host: other"]],
  ].map(([name, lines]): Row => [String(name), () => closing(request((lines as () => string[])())), [400]]),
  ["a host with a path", () => closing(request([bearer()])).replace("Host: localhost", "Host: localhost/a"), [400]],
  ["fields of 20 KB", () => request([bearer(), `X-Long: ${"a".repeat(20_000)}`]), [431]],
  ["a credential of 10 KB", () => closing(request([`Authorization: Bearer ${"a".repeat(10_000)}`])), [401]],
  // Names, methods and versions.
  ["names in another case", () => closing(request([bearer().replace("Authorization", "aUTHORIZATION")])), [200]],
  [
    "one credential by two cases of a name",
    () => closing(request([bearer(), bearer().toLowerCase().slice(0, 15) + valid.secret])),
    [400],
  ],
  [
    "names with other characters",
    () =>
      closing(
        request([`X_Api_Key: ${valid.secret}`, `X.Api.Key: ${valid.secret}`, `Authorization_: Bearer ${valid.secret}`]),
      ),
    [401],
  ],
  [
    "fields that Connection names",
    () => closing(request([bearer()])).replace("close", "close, Authorization, X-Keyhold-Authorization, X-Api-Key"),
    [200],
  ],
  ["HTTP/1.0", () => request([bearer()], { first: `GET ${FORWARD_AUTH} HTTP/1.0` }), [200]],
  ["HTTP/1.0 without a credential", () => request([], { first: `GET ${FORWARD_AUTH} HTTP/1.0` }), [401]],
  [
    "HTTP/1.0 without a host",
    () => request([bearer()], { first: `GET ${FORWARD_AUTH} HTTP/1.0` }).replace("Host: localhost\r\n", ""),
    [200],
  ],
  ["HTTP/1.1 without a host", () => request([bearer()]).replace("Host: localhost\r\n", ""), [400]],
  ["HTTP/1.2", () => request([bearer()], { first: `GET ${FORWARD_AUTH} HTTP/1.2` }), [400]],
  ["a method in lower case", () => request([bearer()], { first: `get ${FORWARD_AUTH} HTTP/1.1` }), [400]],
  [
    "an absolute target",
    () => closing(request([bearer()], { first: `GET http://localhost${FORWARD_AUTH} HTTP/1.1` })),
    [404],
  ],
  ["a target without a slash", () => request([bearer()], { first: `GET ${FORWARD_AUTH.slice(1)} HTTP/1.1` }), [400]],
  [
    "other spellings of the path",
    () =>
      ["/", "/.", "/x/..", "//"]
        .map((start) => request([bearer()], { first: `GET ${start}${FORWARD_AUTH} HTTP/1.1` }))
        .join("") + last(),
    [404, 404, 404, 404, 200],
  ],
]);

describe.each(["on", "off"])("with the fast path %s", (fastPath) => {
  beforeAll(() =>
    suite.server.restart({
      ...{ KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAYS: "forward-auth" },
      KEYHOLD_FAST_PATH: fastPath,
    }),
  );

  test.for(ROWS)("%s", async ([, sent, statuses]) => {
    const port = Number(new URL(suite.server.url).port);
    const seen = await observeHttp1(port, [Buffer.from(sent(), "latin1")]);
    expect(seen.map(({ status }) => status)).toEqual(statuses);
    for (const { status, headers, body } of seen) {
      expect(headers["x-keyhold-actor-id"]).toBe(status === 200 ? "team_1" : undefined);
      expect(body + JSON.stringify(headers)).not.toMatch(/kh_v1/);
    }
  });

  describe("over HTTP/2", () => {
    const ask = async (fields: readonly (readonly [string, string | string[]])[], body?: string) => {
      const session = connect(suite.server.url);
      try {
        const stream = session.request({
          ...{ ":path": FORWARD_AUTH, ":method": body === undefined ? "GET" : "POST" },
          ...{ "x-keyhold-authorization": `Bearer ${suite.token("keyhold:verify")}` },
          ...Object.fromEntries(fields),
        });
        stream.end(body);
        const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
          stream.on("response", resolve).on("error", reject);
        });
        return headers[":status"];
      } finally {
        session.destroy();
      }
    };
    const credential = () => ["authorization", `Bearer ${valid.secret}`] as const;

    test("decides as over HTTP/1.1", async () => {
      expect(await ask([credential()])).toBe(200);
      expect(await ask([credential()], "a body")).toBe(200);
      expect(await ask([])).toBe(401);
      expect(await ask([["authorization", `Bearer ${revoked}`]], "a body")).toBe(401);
      expect(await ask([["x-api-key", [valid.secret, valid.secret]]])).toBe(400);
      expect(await ask([credential(), ["x-api-key", revoked]])).toBe(400);
    });

    test("reads nothing from pseudo-headers, nor another path", async () => {
      const query = `?authorization=Bearer%20${valid.secret}`;
      expect(await ask([[":path", FORWARD_AUTH + query]])).toBe(400);
      for (const path of [`/.${FORWARD_AUTH}`, `/${FORWARD_AUTH}`, `${FORWARD_AUTH}%2f`])
        expect(await ask([credential(), [":path", path]])).toBe(404);
      // Some of them the protocol itself rejects.
      for (const authority of ["a b", "localhost/x", "localhost@a"])
        expect(await ask([credential(), [":authority", authority]]).catch(() => 400)).toBe(400);
    });
  });
});
