import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { create, type FileRegistry, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ErrorInfoSchema, RequestInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { STATUSES } from "../../../src/transport/wire/http-error.ts";
import { send, sendRaw } from "./client.ts";
import { compileLibrary, messageOf, methodsOf } from "./library.ts";
import { MAX_REQUEST_BYTES, serve, type TestServer } from "./server.ts";

let registry: FileRegistry;
let server: TestServer;

beforeAll(async () => {
  registry = await compileLibrary();
  server = await serve(methodsOf(registry));
});

afterAll(() => server.fastify.close());

beforeEach(() => {
  server.behaviours.clear();
  server.log.length = 0;
});

const errorInfo = (reason: string) => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason,
  domain: "keyhold",
  metadata: {},
});

type Sample = readonly [what: string, request: string, headers: string, body: string | undefined];

const POST = "POST /v1/items/a";
const JSON_TYPE = "content-type: application/json";

/** Headers are written as in HTTP/1.1, with a line break between. */
const accepted: readonly Sample[] = [
  ["JSON", POST, JSON_TYPE, "{}"],
  ["JSON in capitals", POST, "content-type: Application/JSON", "{}"],
  ["JSON in UTF-8", POST, "content-type: application/json; charset=utf-8", "{}"],
  ["JSON with an empty parameter", POST, "content-type: application/json;", "{}"],
  ["JSON with another parameter", POST, 'content-type: application/json ; v=1;x="y"', "{}"],
  ["JSON in utf8", POST, "content-type: application/json;v=1; charset=utf8 ;", "{}"],
  ["JSON in quoted UTF-8", POST, 'content-type: application/json;charset="UTF-8"', "{}"],
  ["no encoding", POST, `${JSON_TYPE}\ncontent-encoding: identity`, "{}"],
  ["no body", "POST /v1/items/a:rotate", "", undefined],
  ["an empty body", "POST /v1/items/a:rotate", "content-length: 0", undefined],
  ["an empty body of JSON", "POST /v1/items/a:rotate", JSON_TYPE, ""],
  ["an empty body in chunks", "POST /v1/items/a:rotate", "transfer-encoding: chunked", undefined],
  ["a body in chunks", POST, `${JSON_TYPE}\ntransfer-encoding: chunked`, "{}"],
  ["an empty body for a method without one", "DELETE /v1/items/a", "content-type: text/plain", undefined],
  ["an empty body in chunks for a method without one", "GET /v1/items/a", "transfer-encoding: chunked", undefined],
  ["a body of the greatest size", POST, JSON_TYPE, "{}".padEnd(MAX_REQUEST_BYTES)],
];

const headersOf = (lines: string) =>
  Object.fromEntries(lines.split("\n").flatMap((line) => (line === "" ? [] : [line.split(": ")])));

const tooLarge = " ".repeat(MAX_REQUEST_BYTES + 1);

/** The status and code of each reason. */
const REJECTIONS = {
  MEDIA_TYPE_NOT_SUPPORTED: [415, "INVALID_ARGUMENT"],
  CONTENT_ENCODING_NOT_SUPPORTED: [415, "INVALID_ARGUMENT"],
  BODY_TOO_LARGE: [413, "RESOURCE_EXHAUSTED"],
  PATH_NOT_FOUND: [404, "NOT_FOUND"],
  METHOD_NOT_ALLOWED: [405, "UNIMPLEMENTED"],
  URL_MALFORMED: [400, "INVALID_ARGUMENT"],
} as const;

const rejected: readonly (readonly [...Sample, reason: keyof typeof REJECTIONS])[] = [
  ["another type", POST, "content-type: text/plain", "{}", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["a form", POST, "content-type: application/x-www-form-urlencoded", "", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["a type that begins like JSON", POST, "content-type: application/json-patch", "{}", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["no type", POST, "", "{}", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["a malformed type", POST, "content-type: json", "{}", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["another charset", POST, "content-type: application/json; charset=latin1", "{}", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["a compressed body", POST, `${JSON_TYPE}\ncontent-encoding: gzip`, "{}", "CONTENT_ENCODING_NOT_SUPPORTED"],
  ["a body too large", POST, JSON_TYPE, tooLarge, "BODY_TOO_LARGE"],
  ["a body too large in chunks", POST, `${JSON_TYPE}\ntransfer-encoding: chunked`, tooLarge, "BODY_TOO_LARGE"],
  ["a body far too large", POST, JSON_TYPE, " ".repeat(20_000_000), "BODY_TOO_LARGE"],
  ["a body too large for a method without one", "GET /v1/items/a", "", tooLarge, "BODY_TOO_LARGE"],
  ["an unknown path", "GET /v1/nowhere", "", undefined, "PATH_NOT_FOUND"],
  ["a path elsewhere", "GET /nowhere", "", undefined, "PATH_NOT_FOUND"],
  ["the root", "GET /", "", undefined, "PATH_NOT_FOUND"],
  ["a trailing slash", "GET /v1/items/", "", undefined, "PATH_NOT_FOUND"],
  ["an RPC without annotation", "POST /keyhold.test.library.Library/Unannotated", "", undefined, "PATH_NOT_FOUND"],
  ["a wrong method", "DELETE /v1/items", "", undefined, "METHOD_NOT_ALLOWED"],
  ["a wrong method with a body", "POST /v1/items", "content-type: text/plain", "x", "METHOD_NOT_ALLOWED"],
  ["a malformed encoding", "GET /v1/items/%zz", "", undefined, "URL_MALFORMED"],
  ["half an encoding", "GET /v1/items/%", "", undefined, "URL_MALFORMED"],
  ["an encoding that is not UTF-8", "GET /v1/items/%ff", "", undefined, "URL_MALFORMED"],
  ["an overlong encoding", "GET /v1/items/%C0%80", "", undefined, "URL_MALFORMED"],
  ["a malformed encoding elsewhere", "GET /nowhere/%zz", "", undefined, "URL_MALFORMED"],
];

describe("requests", () => {
  test.each(accepted)("%s is accepted", async (_, request, headers, body) => {
    const answer = await send(server.port, request, { headers: headersOf(headers), body });
    expect(answer.json()).toMatchObject({ name: "a" });
    expect(answer.status).toBe(200);
  });

  test.each(rejected)("%s is rejected", async (_, request, headers, body, reason) => {
    const [status, name] = REJECTIONS[reason];
    const count = server.invoked.length;
    const answer = await send(server.port, request, { headers: headersOf(headers), body });
    const message = expect.any(String);
    expect(answer.json()).toEqual({ error: { code: status, message, status: name, details: [errorInfo(reason)] } });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
    });
    expect(server.invoked.length).toBe(count);
    expect(server.log).toEqual([]);
  });

  test("the list of samples is complete", () => {
    expect(accepted.length).toBeGreaterThan(10);
    expect(rejected.length).toBeGreaterThan(20);
  });

  test("a wrong method is answered with the allowed ones", async () => {
    const answer = await send(server.port, "DELETE /v1/items");
    expect(answer.headers.allow).toBe("GET, HEAD");
  });

  test("the connection stays usable after a refused body", async () => {
    const large = `POST /v1/items/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${tooLarge.length}\r\n\r\n${tooLarge}`;
    const wrong = "POST /v1/items/a HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r\nabc";
    const last = "GET /v1/items/abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const answers = await sendRaw(server.port, large + wrong + last);
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 415", "HTTP/1.1 200"]);
  });
});

describe("responses", () => {
  test("are JSON in snake_case with every required field, and Cache-Control: no-store", async () => {
    const answer = await send(server.port, "GET /v1/items/a");
    expect(answer.json()).toEqual({
      ...{ name: "a", size: 0, is_lent: false, genre: "GENRE_UNSPECIFIED" },
      ...{ tags: [], pages: [], genres: [], books: [], labels: {}, loan_times: [] },
    });
    expect(answer.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
    });
  });

  test("HEAD is answered like GET without the body", async () => {
    const get = await send(server.port, "GET /v1/items/a");
    const head = await send(server.port, "HEAD /v1/items/a");
    expect([head.status, head.text]).toEqual([200, ""]);
    expect({ ...head.headers, date: "" }).toEqual({ ...get.headers, date: "" });
  });

  test("OPTIONS is left to CORS", async () => {
    const options = await send(server.port, "OPTIONS /v1/items/a");
    expect(options.status).toBe(404);
  });

  test("the RPC reads headers and sets some", async () => {
    server.behaviours.set("Get", (request, call) => {
      const seen = [call.header("x-one"), call.header("cookie"), call.header("x-none")];
      call.setHeader("x-seen", JSON.stringify(seen));
      call.setHeader("cache-control", "public, max-age=60");
      return request;
    });
    const answer = await send(server.port, "GET /v1/items/a", { headers: { "X-One": "1", cookie: "a=b; c=d" } });
    expect(answer.headers["x-seen"]).toBe('["1","a=b; c=d",null]');
    expect(answer.headers["cache-control"]).toBe("public, max-age=60");
  });

  const tags = [
    ['"abc"', 304],
    ['W/"abc"', 304],
    ['"x", "abc"', 304],
    ["*", 304],
    ['"x"', 200],
    ["abc", 200],
  ] as const;

  test.each(tags)("If-None-Match: %s", async (known, status) => {
    server.behaviours.set("Get", (request, call) => {
      call.setHeader("etag", '"abc"');
      return request;
    });
    const answer = await send(server.port, "GET /v1/items/a", { headers: { "if-none-match": known } });
    expect(answer.status).toBe(status);
    expect(answer.headers.etag).toBe('"abc"');
    expect(answer.text === "").toBe(status === 304);
  });

  test("If-None-Match applies only to reads", async () => {
    server.behaviours.set("Post", (request, call) => {
      call.setHeader("etag", '"abc"');
      return request;
    });
    const answer = await send(server.port, "POST /v1/items/a", { body: {}, headers: { "if-none-match": "*" } });
    expect(answer.status).toBe(200);
  });
});

describe("errors", () => {
  const fail = (error: unknown) =>
    server.behaviours.set("Get", () => {
      throw error;
    });

  const codes = [
    [Code.Canceled, 499, "CANCELLED"],
    [Code.Unknown, 500, "UNKNOWN"],
    [Code.InvalidArgument, 400, "INVALID_ARGUMENT"],
    [Code.DeadlineExceeded, 504, "DEADLINE_EXCEEDED"],
    [Code.NotFound, 404, "NOT_FOUND"],
    [Code.AlreadyExists, 409, "ALREADY_EXISTS"],
    [Code.PermissionDenied, 403, "PERMISSION_DENIED"],
    [Code.ResourceExhausted, 429, "RESOURCE_EXHAUSTED"],
    [Code.FailedPrecondition, 409, "FAILED_PRECONDITION"],
    [Code.Aborted, 409, "ABORTED"],
    [Code.OutOfRange, 400, "OUT_OF_RANGE"],
    [Code.Unimplemented, 501, "UNIMPLEMENTED"],
    [Code.Internal, 500, "INTERNAL"],
    [Code.Unavailable, 503, "UNAVAILABLE"],
    [Code.DataLoss, 500, "DATA_LOSS"],
    [Code.Unauthenticated, 401, "UNAUTHENTICATED"],
  ] as const;

  test.each(codes)("code %i is HTTP %i %s", async (code, status, name) => {
    fail(new ConnectError("no", code));
    const answer = await send(server.port, "GET /v1/items/a");
    expect(answer.status).toBe(status);
    expect(answer.json()).toEqual({ error: { code: status, message: "no", status: name, details: [] } });
    expect(server.log).toEqual([]);
  });

  test("every code is in the table", () => {
    expect(codes.map(([code]) => `${code}`).toSorted()).toEqual(Object.keys(STATUSES).toSorted());
  });

  test("details are JSON for messages and for bytes", async () => {
    const book = messageOf(registry, "Book");
    const requestInfo = create(RequestInfoSchema, { requestId: "r1" });
    const error = new ConnectError("no", Code.NotFound, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "R", domain: "keyhold", metadata: { a: "b" } } },
      { desc: book, value: { title: "x" } },
    ]);
    const value = toBinary(RequestInfoSchema, requestInfo);
    error.details.push({ type: "google.rpc.RequestInfo", value }, { type: "unknown.Type", value });
    fail(error);
    expect((await send(server.port, "GET /v1/items/a")).json().error.details).toEqual([
      { ...errorInfo("R"), metadata: { a: "b" } },
      {
        "@type": "type.googleapis.com/keyhold.test.library.Book",
        ...{ title: "x", author_name: "", topics: [], genre: "GENRE_UNSPECIFIED", labels: {} },
      },
      { "@type": "type.googleapis.com/google.rpc.RequestInfo", request_id: "r1", serving_data: "" },
    ]);
  });

  test("metadata of an error becomes headers, except headers of the message", async () => {
    const headers = {
      "www-authenticate": 'Bearer realm="x"',
      "retry-after": "1",
      "content-length": "3",
      "content-type": "a/b",
      "transfer-encoding": "chunked",
      connection: "close",
    };
    fail(new ConnectError("no", Code.Unauthenticated, headers));
    const answer = await send(server.port, "GET /v1/items/a");
    expect(answer.headers).toMatchObject({ "www-authenticate": 'Bearer realm="x"', "retry-after": "1" });
    expect(answer.headers).toMatchObject({ connection: "keep-alive", "content-length": `${answer.text.length}` });
    expect(answer.headers["transfer-encoding"]).toBeUndefined();
    expect(answer.json().error.status).toBe("UNAUTHENTICATED");
  });

  test("response headers of the RPC do not make an error cacheable", async () => {
    server.behaviours.set("Get", (_, call) => {
      call.setHeader("cache-control", "public");
      call.setHeader("etag", '"abc"');
      throw new ConnectError("no", Code.Unavailable);
    });
    const answer = await send(server.port, "GET /v1/items/a", { headers: { "if-none-match": "*" } });
    expect(answer.status).toBe(503);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.headers.etag).toBeUndefined();
  });

  test.each([
    ["an error", new Error("the secret cause")],
    ["a string", "the secret cause"],
    ["nothing", undefined],
  ])("an unexpected throw of %s is INTERNAL, and only the log has its cause", async (_, error) => {
    fail(error);
    const answer = await send(server.port, "GET /v1/items/a");
    expect(answer.json()).toEqual({
      error: { code: 500, message: "internal error", status: "INTERNAL", details: [errorInfo("INTERNAL")] },
    });
    expect(server.log.length).toBe(1);
    expect(server.log.join()).toContain(error === undefined ? "a request failed" : "the secret cause");
  });

  test("a KeyholdError has its code", async () => {
    fail(new KeyholdError("API_KEY_NOT_FOUND", "there is no key x"));
    expect((await send(server.port, "GET /v1/items/a")).json()).toEqual({
      error: {
        code: 404,
        message: "there is no key x",
        status: "NOT_FOUND",
        details: [errorInfo("API_KEY_NOT_FOUND")],
      },
    });
    expect(server.log).toEqual([]);
  });

  test("a result that is not a message is INTERNAL", async () => {
    server.behaviours.set("Get", () => ({ name: 1 }) as unknown as Message);
    expect((await send(server.port, "GET /v1/items/a")).status).toBe(500);
    expect(server.log.length).toBe(1);
  });
});

describe("HTTP/2", () => {
  interface Exchange {
    readonly stream: ClientHttp2Stream;
    answer(): Promise<{ status: number; body: unknown }>;
  }

  function open(line: string, body?: string, headers: Readonly<Record<string, string>> = {}): Exchange {
    const [method = "", path = ""] = line.split(" ");
    const session = connectHttp2(server.base);
    onTestFinished(() => session.close());
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const stream = session.request(
      { ":method": method, ":path": path, ...type, ...headers },
      { endStream: body === undefined },
    );
    const answered = once(stream, "response");
    answered.catch(() => undefined);
    if (body !== undefined) stream.write(body);
    return {
      stream,
      async answer() {
        if (!stream.writableEnded) stream.end();
        const [head] = await answered;
        return { status: head[":status"], body: JSON.parse(await text(stream)) };
      },
    };
  }

  const samples = [
    ["GET /v1/items/a?size=1", undefined, 200, { name: "a", size: 1 }],
    ["GET /v1/items/a", "", 200, { name: "a" }],
    ["POST /v1/items/a%3Arotate", '{"size": 1}', 200, { name: "a:rotate", size: 1 }],
    ["POST /v1/items/a:rotate", undefined, 200, { name: "a" }],
    ["POST /v1/items/a:rotate", "", 200, { name: "a" }],
    ["GET /v1/items/a", "{}", 400, { error: { message: "body: must be empty" } }],
    ["GET /v1/items/%", undefined, 400, { error: { details: [errorInfo("URL_MALFORMED")] } }],
    ["DELETE /v1/items", undefined, 405, { error: { details: [errorInfo("METHOD_NOT_ALLOWED")] } }],
    ["POST /v1/items/a", tooLarge, 413, { error: { details: [errorInfo("BODY_TOO_LARGE")] } }],
    ["POST /v1/items/a", " ".repeat(3_000_000), 413, { error: { details: [errorInfo("BODY_TOO_LARGE")] } }],
  ] as const;

  test.each(samples)("%s", async (line, body, status, message) => {
    const answer = await open(line, body).answer();
    expect(answer.body).toMatchObject(message);
    expect(answer.status).toBe(status);
  });
});
