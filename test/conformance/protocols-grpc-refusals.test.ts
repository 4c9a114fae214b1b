import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { http1Answers } from "../hostile/answers.ts";
import { table, useService } from "../support/conformance.ts";
import { callGrpc, exchange, frame, send } from "../support/wire.ts";

/** Requests that reach no RPC. A gRPC client would decode the JSON of an HTTP error as a message. */
const suite = useService();

const VERIFY = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

interface Refusal {
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly status: Code;
  /** Not of an unknown method. */
  readonly reason?: string;
}

const { Unimplemented, InvalidArgument, PermissionDenied } = Code;

const REFUSALS: Readonly<Record<string, Refusal>> = {
  "an unknown service": { path: "/nope.Nope/Nope", status: Unimplemented },
  "an unknown method": { path: `${VERIFY}2`, status: Unimplemented },
  "a REST path": { path: "/v2alpha1/admin/apiKeys:verify", status: Unimplemented },
  "a page": { path: "/docs", status: Unimplemented },
  "a malformed path": { path: "/%zz", status: InvalidArgument, reason: "URL_MALFORMED" },
  "a foreign page": {
    path: VERIFY,
    headers: { origin: "https://attacker.example" },
    status: PermissionDenied,
    reason: "ORIGIN_NOT_ALLOWED",
  },
  "a proxy": {
    path: VERIFY,
    headers: { "x-forwarded-for": "192.0.2.1" },
    status: PermissionDenied,
    reason: "PROXY_NOT_ALLOWED",
  },
};

const TYPES = [
  ...["application/grpc", "application/grpc+proto", "application/grpc+json", "application/grpc+thrift"],
  ...["application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json", "application/grpc-web+thrift"],
  ...["application/grpc-web-text", "application/grpc-web-text+proto", "Application/GRPC"],
];

const NONE = frame(Buffer.alloc(0));

/** Sends a request over HTTP/1.1, and returns the header fields, body and trailers of its response, which has the status 200. */
async function sendHttp1(method: string, path: string, headers: Record<string, string>, body = NONE): Promise<string> {
  const all = { host: "localhost", "content-length": body.length, ...headers };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = `${method} ${path} HTTP/1.1\r\n${fields.join("")}\r\n${body}`;
  const [first] = http1Answers(Buffer.from(await exchange(suite.server.address, request), "latin1"));
  expect(first?.status).toBe(200);
  return first?.text ?? "";
}

/** Expects the status and no body. Connect sends the status of gRPC in trailers, after chunks. */
function expectStatus(text: string, status: Code): void {
  expect(text).toMatch(new RegExp(`^grpc-status: ${status}\\r$`, "m"));
  expect(text).toMatch(/\r\n\r\n(?:0\r\n(?:.+\r\n)*\r\n)?$/);
}

describe.for(table(TYPES))("%s", (type) => {
  const call = (path: string, headers: Record<string, string> = {}, body = NONE) =>
    callGrpc(suite.server.url, path, body, { "content-type": type, ...headers });

  async function expectHttp1(path: string, headers: Record<string, string>, status: Code): Promise<void> {
    const text = await sendHttp1("POST", path, { "content-type": type, ...headers });
    expectStatus(text, status);
    expect(text).toMatch(new RegExp(`^content-type: ${type.replaceAll(/[+.]/g, "\\$&")}\r$`, "m"));
    expect(text).toMatch(/^content-length: 0\r$/m);
  }

  test.for(table(Object.entries(REFUSALS)))("%s: over HTTP/2 and HTTP/1.1", async ([, refusal]) => {
    const { path, headers = {}, status, reason } = refusal;
    const answer = await call(path, headers);
    expect(answer).toMatchObject({ http: 200, status, reason, isTrailersOnly: true });
    expect(answer.header("content-type")).toBe(type);
    await expectHttp1(path, headers, status);
  });

  test("another Host than the server's: over HTTP/2 and HTTP/1.1", async () => {
    const answer = await call(VERIFY, { ":authority": "attacker.example" });
    expect(answer).toMatchObject({ http: 200, status: PermissionDenied, reason: "HOST_NOT_ALLOWED" });
    expect(answer.isTrailersOnly).toBe(true);
    await expectHttp1(VERIFY, { host: "attacker.example" }, PermissionDenied);
  });

  test("a malformed Host, which is not HTTP/2's concern", async () => {
    const answer = await call(VERIFY, { ":authority": "localhost:99999" });
    expect(answer).toMatchObject({ http: 200, status: InvalidArgument, reason: "HTTP_MALFORMED" });
  });

  test("an RPC with another method than POST", async () => {
    for (const method of ["PUT", "PATCH"]) {
      const answer = await call(VERIFY, { ":method": method });
      expect(answer).toMatchObject({ http: 200, status: Unimplemented, reason: undefined });
      expect(answer.header("allow")).toBe("POST");
    }
    for (const method of ["GET", "DELETE"]) {
      const text = await sendHttp1(method, VERIFY, { "content-type": type }, Buffer.alloc(0));
      expectStatus(text, Unimplemented);
    }
  });
});

test.for(TYPES.filter((type) => /thrift|text/.test(type)))("messages in %s", async (type) => {
  const over2 = await callGrpc(suite.server.url, VERIFY, NONE, { "content-type": type });
  expect(over2).toMatchObject({ http: 200, status: Unimplemented, reason: undefined });
  expect(over2.message).toContain("application/grpc-web, with +proto or +json");
  expectStatus(await sendHttp1("POST", VERIFY, { "content-type": type }), Unimplemented);
});

test("a stream in both directions over HTTP/1.1", async () => {
  const answer = await send(suite.server.url + REFLECTION, "POST", NONE, { "content-type": "application/grpc-web" });
  expect([answer.status, answer.text]).toEqual([200, ""]);
  expect(answer.headers.get("grpc-status")).toBe(String(Unimplemented));
  expect(answer.headers.get("grpc-message")).toBe("bidirectional streams need HTTP/2");
});
