import { describe, expect, test } from "vitest";
import { http1Answers } from "../hostile/answers.ts";
import { CALLS, OTHER_REQUESTS } from "../hostile/calls.ts";
import { converse, toHttp1 } from "../hostile/http1.ts";
import { fieldsOf, HELLO, headersFrame, resetFrame } from "../hostile/http2.ts";
import { useService } from "../support/conformance.ts";
import { Frame, frame } from "../support/http2-wire.ts";
import { http2 } from "../support/raw-http.ts";
import { callGrpc, send } from "../support/wire.ts";

const suite = useService();

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const VERIFY = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

function port(): number {
  return Number(new URL(suite.server.url).port);
}

async function ask(lines: readonly string[], body = "") {
  const bytes = Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const { received } = await converse(port(), [bytes]);
  return http1Answers(received);
}

function errorLines(): string[] {
  return suite.server
    .log()
    .split("\n")
    .filter((line) => /"level":(?:50|60)/.test(line));
}

describe("a duplicate Host header is refused with 400 (RFC 9112 §3.2)", () => {
  const targets = [
    "/",
    "/nope",
    "/docs",
    "/health/alive",
    "/v2alpha1/admin/issuedApiKeys",
    "/v2alpha1/derivedKeys/jwks.json",
  ];

  test.for(targets)("GET %s", async (path) => {
    for (const second of ["localhost", "example.com"]) {
      const answers = await ask([`GET ${path} HTTP/1.1`, "Host: localhost", `Host: ${second}`]);
      expect(answers.map(({ status }) => status)).toEqual([400]);
      expect(answers[0]?.text).toContain("HTTP_MALFORMED");
    }
  });

  test.for(["application/json", "application/proto", "application/grpc-web"])("POST of %s", async (type) => {
    const head = [`POST ${VERIFY} HTTP/1.1`, "host: localhost", "Host: localhost", `Content-Type: ${type}`];
    const answers = await ask([...head, "Content-Length: 2"], "{}");
    expect(answers.map(({ status }) => status)).toEqual([400]);
  });

  test("a request after it is not answered", async () => {
    const one = "GET /health/alive HTTP/1.1\r\nHost: localhost\r\n";
    const answers = await ask([`${one}Host: a\r\n\r\n${one}`.trimEnd()]);
    expect(answers.map(({ status }) => status).slice(0, 1)).toEqual([400]);
  });
});

describe("a malformed Host is refused with 400 on either path", () => {
  const hosts = ["a b", "[", "user@localhost", "localhost/path", "1.2.3.4.5", "localhost:99999", "a,b", "%zz", ""];

  test.for(hosts)("%j", async (host) => {
    for (const path of [VERIFY, "/health/alive", "/v2alpha1/admin/issuedApiKeys"]) {
      for (const type of ["application/json", "application/proto"]) {
        const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, `Content-Type: ${type}`, "Content-Length: 2"];
        const answers = await ask(head, "{}");
        expect(answers.map(({ status }) => status)).toEqual([400]);
      }
    }
  });
});

describe("QUERY", () => {
  const known = [
    "/v2alpha1/admin/issuedApiKeys",
    `/v2alpha1/admin/issuedApiKeys/${KEY_ID}`,
    "/v2alpha1/admin/apiKeys:verify",
    "/v2alpha1/derivedKeys/jwks.json",
    "/health/alive",
    "/health/ready",
    "/docs",
    "/openapi.json",
    VERIFY,
  ];

  test.for(known)("is not allowed on %s", async (path) => {
    for (const body of ["", "{}"]) {
      const head = [`QUERY ${path} HTTP/1.1`, "Host: localhost", "Content-Type: application/json"];
      const [answer] = await ask([...head, `Content-Length: ${body.length}`], body);
      expect(answer?.status).toBe(405);
      expect(answer?.text).toMatch(/\r\nallow: [A-Z]+/i);
    }
    const answer = await http2(suite.server.url, { path, method: "QUERY", host: "localhost" });
    expect(answer.status).toBe(405);
  });

  test("is 404 on unknown paths", async () => {
    const [answer] = await ask(["QUERY /nope HTTP/1.1", "Host: localhost"]);
    expect(answer?.status).toBe(404);
  });
});

test("a path with other methods is 405 with those methods", async () => {
  for (const path of ["/health/alive", "/health/ready", "/docs", "/docs/start.js", "/openapi.json"]) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "TRACE"]) {
      const [answer] = await ask([`${method} ${path} HTTP/1.1`, "Host: localhost"]);
      expect({ path, method, status: answer?.status }).toEqual({ path, method, status: 405 });
      expect(answer?.text).toMatch(/\r\nallow: (?:GET, HEAD|HEAD, GET)\r\n/i);
    }
  }
});

describe("a body that no handler reads", () => {
  const bodies = ["", "{", "nope", '{"a":1}', '{"__proto__":{}}', "\xff\xfe", "[".repeat(100_000)];
  const types = [
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "application/x-www-form-urlencoded",
  ];

  test.for(["/", "/nope", "/docs", "/docs/", "/openapi.json", "/health/alive", "/v2alpha1/nope"])(
    "is refused without an error in the log: %s",
    async (path) => {
      const before = errorLines().length;
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        for (const type of types) {
          for (const body of bodies) {
            const bytes = Buffer.from(body, "latin1").toString("latin1");
            const head = [`${method} ${path} HTTP/1.1`, "Host: localhost", `Content-Type: ${type}`];
            const [answer] = await ask([...head, `Content-Length: ${bytes.length}`], bytes);
            expect({ method, type, body, status: answer?.status }).toEqual({
              method,
              type,
              body,
              status: expect.toSatisfy((status: number) => status >= 400 && status < 500),
            });
          }
        }
      }
      expect(errorLines().slice(before)).toEqual([]);
    },
  );

  test("of gRPC to an unknown method leaves no error in the log", async () => {
    const before = errorLines().length;
    const { status } = await callGrpc(suite.server.url, "/nope.Nope/Nope", Buffer.from("{"));
    expect(status).toBe(12);
    expect(errorLines().slice(before)).toEqual([]);
  });
});

describe("a caller that disconnects leaves no error in the log", () => {
  const target = { issuedKeyId: KEY_ID, importedKeyId: KEY_ID, credential: "none", mark: "left", suffix: "left" };
  const requests = [...OTHER_REQUESTS, ...CALLS.map((make) => make(target))];
  const interruptions = [
    ["RST_STREAM", resetFrame(1), "half-close"],
    ["FIN", Buffer.alloc(0), "half-close"],
    ["a reset", Buffer.alloc(0), "reset"],
  ] as const;

  test.for(interruptions)("HTTP/2, %s", async ([, interruption, ending]) => {
    const before = errorLines().length;
    for (const request of requests) {
      const headers = headersFrame(1, fieldsOf(request));
      const part = frame(Frame.DATA, 0, 1, request.body.subarray(0, -1));
      const bytes = Buffer.concat([HELLO, headers, part]);
      for (const segments of [[Buffer.concat([bytes, interruption])], [bytes, interruption]]) {
        await converse(port(), segments, { ending });
      }
    }
    await send(`${suite.server.url}/health/alive`, "GET", undefined);
    expect(errorLines().slice(before)).toEqual([]);
  });

  test.for(["half-close", "reset"] as const)("HTTP/1.1, %s", async (ending) => {
    const before = errorLines().length;
    for (const request of requests) {
      for (const isChunked of [false, true]) {
        await converse(port(), [toHttp1(request, { isChunked }).subarray(0, -1)], { ending });
      }
    }
    await send(`${suite.server.url}/health/alive`, "GET", undefined);
    expect(errorLines().slice(before)).toEqual([]);
  });
});
