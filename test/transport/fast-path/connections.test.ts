import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { requestPolicy } from "../../../src/transport/pipeline/host-check.ts";
import { observeHttp1, observeHttp2, type Seen } from "./observe.ts";
import { bodyOf, LAST_REQUEST, OTHER_REQUEST, pathOf, send, WAYS, type Way } from "./protocols.ts";
import { type Subject, startSubject } from "./subjects.ts";

let fast: Subject;
let stock: Subject;

beforeAll(async () => {
  fast = await startSubject({});
  stock = await startSubject({ fastPath: false });
});
afterAll(() => Promise.all([fast.close(), stock.close()]));

let requests = 0;
const newId = () => `connection-${++requests}`;

const http1Ways = WAYS.filter(({ http }) => http === 1);
const http2Ways = WAYS.filter(({ http }) => http === 2);

/** A whole HTTP/1 request. */
function text(way: Way, credential: string, lines: readonly string[] = [], version = "1.1"): Buffer {
  const body = bodyOf(way, { credential });
  const head = [
    `POST ${pathOf(way)} HTTP/${version}`,
    `content-type: ${way.contentType}`,
    `content-length: ${body.length}`,
    "x-request-id: a",
    ...lines,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}

const HOST = "host: localhost";

/** A log line. */
const CANCELED = { status: 499, code: "CANCELLED", msg: "request" };

describe.for(http1Ways)("$name", (way) => {
  const cases: readonly (readonly [name: string, parts: readonly (string | Buffer)[]])[] = [
    [
      "three requests at once",
      [Buffer.concat([text(way, "later", [HOST]), text(way, "", [HOST]), text(way, "ok", [HOST])]), LAST_REQUEST],
    ],
    [
      "one for the fast path between two for Fastify",
      [Buffer.concat([get(), text(way, "ok", [HOST]), get()]), LAST_REQUEST],
    ],
    ["Connection: close", [Buffer.concat([text(way, "ok", [HOST, "connection: close"]), text(way, "ok", [HOST])])]],
    ["HTTP/1.0", [text(way, "ok", [HOST], "1.0")]],
    ["HTTP/1.0 with keep-alive", [text(way, "ok", [HOST, "connection: keep-alive"], "1.0"), LAST_REQUEST]],
    ["no host", [text(way, "ok")]],
    [
      "a head that arrives byte by byte",
      [...[...text(way, "ok", [HOST])].map((byte) => Buffer.from([byte])), LAST_REQUEST],
    ],
    ["a body shorter than its length", [text(way, "ok", [HOST]).subarray(0, -1)]],
    ["an unknown upgrade", [text(way, "ok", [HOST, "connection: upgrade", "upgrade: x"]), LAST_REQUEST]],
  ];

  const first = way.isHandedOver === true ? [OTHER_REQUEST] : [];

  test.for(cases)("%s", async ([name, rest]) => {
    const parts = [...first, ...rest];
    const ours = await observeOrCut(fast, name, parts);
    expect(ours).toEqual(await observeOrCut(stock, name, parts));
  });

  test("a caller that disconnects during a call ends it", async () => {
    for (const subject of [fast, stock]) {
      const id = newId();
      const socket = connect(subject.port, "127.0.0.1");
      const begun = once(subject.calls, "begun");
      const ended = once(subject.calls, "ended");
      const wait = text(way, "wait", [HOST]).toString("latin1").replace("x-request-id: a", `x-request-id: ${id}`);
      socket.write([...first, wait].join(""));
      await begun;
      socket.resetAndDestroy();
      expect(await ended).toEqual(["CANCELLED"]);
      // Fastify may write no log line for such a call.
      if (subject === fast) expect(await subject.log(id)).toEqual([expect.objectContaining(CANCELED)]);
    }
  });
});

function get(): Buffer {
  return Buffer.from(`GET /health/alive HTTP/1.1\r\n${HOST}\r\nx-request-id: b\r\n\r\n`);
}

/** A client that closes its sending side after half a request, and reads on. */
async function observeOrCut({ port }: Subject, name: string, parts: readonly (string | Buffer)[]): Promise<Seen[]> {
  if (!name.startsWith("a body shorter")) return observeHttp1(port, parts);
  const socket = connect({ port, host: "127.0.0.1" });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(Buffer.from(chunk)));
  socket.end(Buffer.concat(parts.map((part) => Buffer.from(part))));
  await once(socket, "close");
  return [
    {
      status: 0,
      headers: {},
      body: Buffer.concat(chunks)
        .toString()
        .replaceAll(/date: [^\r]*/gi, ""),
    },
  ];
}

describe.for(http2Ways)("$name", (way) => {
  const head = (id: string) => ({ ":path": pathOf(way), "content-type": way.contentType, "x-request-id": id });

  test("a caller that resets its stream during a call ends it", async () => {
    for (const subject of [fast, stock]) {
      const id = newId();
      const ended = once(subject.calls, "ended");
      const begun = once(subject.calls, "begun");
      const seen = observeHttp2(subject.url, head(id), [bodyOf(way, { credential: "wait" })], async (stream) => {
        await begun;
        stream.close(constants.NGHTTP2_CANCEL);
      });
      expect(await seen).toMatchObject({ headers: {}, body: "", resetCode: constants.NGHTTP2_CANCEL });
      expect(await ended).toEqual(["CANCELLED"]);
      if (subject === fast) expect(await subject.log(id)).toEqual([expect.objectContaining(CANCELED)]);
    }
  });

  test("a call that is reset before its body is complete is logged with its RPC, as it is counted", async () => {
    const session = connectHttp2(fast.url);
    onTestFinished(() => session.destroy());
    const id = newId();
    const stream = session.request({ ":method": "POST", ...head(id) });
    stream.on("error", () => {});
    stream.write(bodyOf(way, { credential: "ok" }).subarray(0, 1));
    stream.close(constants.NGHTTP2_CANCEL);
    const [line] = await fast.log(id);
    expect(line).toMatchObject({ ...CANCELED, rpc: "keyhold.v2alpha1.ApiKeysService/VerifyApiKey" });
  });

  test("bodies that are refused unread do not consume the window of the session", async () => {
    const session = connectHttp2(fast.url);
    onTestFinished(() => session.destroy());
    const ask = async (authorization: string, body: Uint8Array) => {
      const stream = session.request({ ":method": "POST", ...head(newId()), authorization });
      const response = once(stream, "response");
      stream
        .resume()
        .on("error", () => {})
        .end(body);
      await new Promise((resolve) => stream.once("close", resolve));
      return (await response)[0][":status"];
    };
    // More than the flow-control window of the session.
    const body = Buffer.alloc(900_000);
    const refused = way.protocol === "grpc" ? 200 : 401;
    for (let i = 0; i < 4; i++) expect(await ask(i % 2 === 0 ? "no" : "no, later", body)).toBe(refused);
    expect(await ask("", bodyOf(way, { credential: "ok" }))).toBe(200);
  });

  test("many streams of one session are served", async () => {
    const seen = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        send(fast, way, { id: newId(), parts: [bodyOf(way, { credential: `c${i}` })] }),
      ),
    );
    expect(seen.flat().map(({ status, body }, i) => [status, body.includes(`c${i}`)])).toEqual(
      Array(50).fill([200, true]),
    );
  });
});

describe.for(WAYS)("closing: $name", (way) => {
  test("a call in flight is answered", async () => {
    const subjects = [await startSubject({}), await startSubject({ fastPath: false })];
    const seen = await Promise.all(
      subjects.map(async (subject) => {
        const begun = once(subject.calls, "begun");
        const deadline = { rest: {}, connect: { "connect-timeout-ms": "300" }, grpc: { "grpc-timeout": "300m" } };
        const credential = way.protocol === "rest" ? "later" : "wait";
        const parts = [bodyOf(way, { credential })];
        const answer = send(subject, way, {
          id: newId(),
          headers: { ...deadline[way.protocol], "x-request-id": "c" },
          parts,
        });
        if (credential === "wait") await begun;
        else await answer;
        await subject.close();
        return answer;
      }),
    );
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]?.length).toBeGreaterThan(0);
  });
});

describe.for(WAYS)("options: $name", (way) => {
  const pair = async (options: Parameters<typeof startSubject>[0]) => {
    const subjects = [await startSubject(options), await startSubject({ ...options, fastPath: false })] as const;
    onTestFinished(async () => void (await Promise.all(subjects.map((subject) => subject.close()))));
    return subjects;
  };
  const place = way.isHandedOver === true ? 1 : 0;
  const names = way.http === 1 ? "host" : ":authority";

  test.for(["https://a.example", "https://b.example"])("CORS, origin %s", async (origin) => {
    const subjects = await pair({ corsOrigins: ["https://a.example"] });
    const request = { id: "a", headers: { origin }, parts: [bodyOf(way, { credential: "ok" })] };
    const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
    expect(ours).toEqual(theirs);
    expect(subjects[0].passedOn()).toBeGreaterThan(0);
  });

  test("CORS, no origin: no header for web pages or caches", async () => {
    const subjects = await pair({ corsOrigins: ["https://a.example"] });
    const request = { id: "a", parts: [bodyOf(way, { credential: "ok" })] };
    const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
    const added = { "access-control-expose-headers": expect.any(String), vary: "Origin" };
    const answer = ours?.at(place);
    expect(theirs?.at(place)).toEqual({ ...answer, headers: { ...answer?.headers, ...added } });
  });

  test.for(["localhost", "example.com", "127.0.0.1:1", "localhost.example.com"])("host check, %s", async (host) => {
    const subjects = await pair({ requestPolicy: requestPolicy({ auth: [], allowedHosts: [], corsOrigins: [] }) });
    const request = { id: "a", headers: { [names]: host }, parts: [bodyOf(way, { credential: "ok" })] };
    const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
    expect(ours).toEqual(theirs);
    const answer = ours?.at(place);
    const isRefused = host.includes("example.com");
    if (way.protocol === "grpc") expect(answer?.headers["grpc-status"]).toBe(isRefused ? "7" : undefined);
    else expect(answer?.status).toBe(isRefused ? 403 : 200);
  });
});
