import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { http1Answers } from "../hostile/answers.ts";
import { CALLS, type CallTarget, type HostileRequest } from "../hostile/calls.ts";
import { converse, toHttp1 } from "../hostile/http1.ts";
import { useService } from "../support/conformance.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const suite = useService();

let count = 0;

function target(): CallTarget {
  return { issuedKeyId: "", importedKeyId: "", credential: "none", mark: "half-close", suffix: `close-${++count}` };
}

/** Creates and a verification over each protocol on HTTP/1.1; gRPC without trailers is answered too. */
const WANTED = / (?:CreateIssuedApiKey|CreateImportedApiKey|BatchCreateImportedApiKeys|VerifyApiKey)$/;

function calls(): HostileRequest[] {
  const one = target();
  return CALLS.map((make) => make(one)).filter(({ kind }) => WANTED.test(kind));
}

const KINDS = calls().map(({ kind }) => kind);

function newCall(kind: string): HostileRequest {
  const call = calls().find((one) => one.kind === kind);
  if (call === undefined) throw new Error(`there is no call "${kind}"`);
  return call;
}

async function ask(segments: readonly Buffer[]): Promise<number[]> {
  const { received, isClosed } = await converse(Number(new URL(suite.server.url).port), segments);
  expect(isClosed).toBe(true);
  return http1Answers(received).map(({ status }) => status);
}

const BAD = Buffer.from("BAD\r\n\r\n");

describe.for(KINDS)("HTTP/1.1, %s", (kind) => {
  test("a client that closes its sending side after the request gets its response", async () => {
    for (const isChunked of [false, true]) expect(await ask([toHttp1(newCall(kind), { isChunked })])).toEqual([200]);
  });

  test("a client that closes its sending side after three pipelined requests gets three responses", async () => {
    const requests = [newCall(kind), newCall("rest POST CreateIssuedApiKey"), newCall(kind)];
    expect(await ask([Buffer.concat(requests.map((request) => toHttp1(request)))])).toEqual([200, 200, 200]);
    expect(await ask(requests.map((request) => toHttp1(request)))).toHaveLength(3);
  });

  test("a malformed request is refused after the response to the request before it", async () => {
    expect(await ask([Buffer.concat([toHttp1(newCall(kind)), BAD])])).toEqual([200, 400]);
    expect(await ask([Buffer.concat([toHttp1(newCall(kind), { isChunked: true }), BAD])])).toEqual([200, 400]);
    expect(await ask([toHttp1(newCall(kind)), BAD, BAD])).toEqual([200, 400]);
  });

  test("a request with a malformed body is refused after the responses to those before it", async () => {
    const head = "POST /v2alpha1/admin/issuedApiKeys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    const malformed = Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nX\r\n`);
    const two = [toHttp1(newCall(kind)), toHttp1(newCall("rest POST CreateIssuedApiKey"))];
    expect(await ask([Buffer.concat([...two, malformed])])).toEqual([200, 200, 400]);
  });
});

test("a client that sends more after a malformed request receives the responses before it", async () => {
  const { port } = new URL(suite.server.url);
  const socket = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
  const request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const [bytes] = await Promise.all([slowly(socket), socket.write(`${request}${BAD}`)]);
  expect(http1Answers(bytes).map(({ status }) => status)).toEqual([200, 400]);
});

/** Receives until the end, and writes a byte after each read: the server may have closed the connection by then. */
async function slowly(socket: Socket): Promise<Buffer> {
  const received: Buffer[] = [];
  for await (const chunk of socket) {
    received.push(chunk);
    socket.write("x");
    await setTimeout(2);
  }
  socket.destroy();
  return Buffer.concat(received);
}

describe("HTTP/1.1, bytes after a create", () => {
  const create = () => toHttp1(newCall("rest POST CreateIssuedApiKey"));
  const head = "POST /v2alpha1/admin/issuedApiKeys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

  test("CONNECT is refused after the response", async () => {
    const connect = Buffer.from("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(await ask([Buffer.concat([create(), create(), connect])])).toEqual([200, 200, 405]);
    expect(await ask([connect])).toEqual([405]);
  });

  test("an incomplete request is refused at once when the client closes its sending side", async () => {
    for (const upgrade of ["", "Connection: upgrade\r\nUpgrade: websocket\r\n"]) {
      for (const body of ["Content-Length: 9\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n9\r\n{"]) {
        expect(await ask([create(), Buffer.from(`${head}${upgrade}${body}`)])).toEqual([200, 400]);
      }
    }
  });

  test("bytes after `Connection: close` are ignored", async () => {
    const last = toHttp1(newCall("rest POST CreateIssuedApiKey"), { fields: [["connection", "close"]] });
    expect(await ask([Buffer.concat([last, create()])])).toEqual([200]);
    expect(await ask([Buffer.concat([last, BAD])])).toEqual([200]);
  });
});

describe("HTTP/1.1 over TLS", () => {
  let server: TestServer;
  const file = (name: string) => resolve(import.meta.dirname, `../support/tls/localhost.${name}.pem`);
  beforeAll(async () => {
    server = await startTestServer({ KEYHOLD_TLS_CERT_FILE: file("cert"), KEYHOLD_TLS_KEY_FILE: file("key") });
  });
  afterAll(() => server.close());

  test("a client that closes its sending side after its requests gets its responses", async () => {
    const requests = [newCall("rest POST CreateIssuedApiKey"), newCall("connect json VerifyApiKey")];
    const segments = [Buffer.concat(requests.map((request) => toHttp1(request)))];
    const { received, isClosed } = await converse(Number(new URL(server.url).port), segments, { tls: true });
    expect(isClosed).toBe(true);
    expect(http1Answers(received).map(({ status }) => status)).toEqual([200, 200]);
  });

  test("a client that closes its sending side receives the last response, although the server closes the connection", async () => {
    const large = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const last = "GET /health/alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const port = Number(new URL(server.url).port);
    // The server reads the end of TLS only after the large response, and not always.
    for (let round = 0; round < 20; round++) {
      const { received, isClosed } = await converse(port, [Buffer.from(`${large}${last}`)], { tls: true });
      expect(isClosed).toBe(true);
      expect(http1Answers(received).map(({ status }) => status)).toEqual([200, 200]);
    }
  });

  test("an idle connection is closed when the client closes its sending side", async () => {
    const { received, isClosed } = await converse(Number(new URL(server.url).port), [], { tls: true });
    expect({ received: received.length, isClosed }).toEqual({ received: 0, isClosed: true });
  });
});
