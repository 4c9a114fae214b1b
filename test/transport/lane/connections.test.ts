import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { observeHttp1, observeHttp2, type Seen } from "./observe.ts";
import { bodyOf, LAST_REQUEST, pathOf, send, WAYS, type Way } from "./protocols.ts";
import { type Subject, startSubject } from "./subjects.ts";

let lane: Subject;
let stock: Subject;

beforeAll(async () => {
  lane = await startSubject({});
  stock = await startSubject({ lane: false });
});
afterAll(() => Promise.all([lane.close(), stock.close()]));

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

/** A line of the log. */
const CANCELED = { status: 499, code: "CANCELLED", msg: "request" };

describe.for(http1Ways)("$name", (way) => {
  const cases: readonly (readonly [name: string, parts: readonly (string | Buffer)[]])[] = [
    [
      "three requests at once",
      [Buffer.concat([text(way, "later", [HOST]), text(way, "", [HOST]), text(way, "ok", [HOST])]), LAST_REQUEST],
    ],
    [
      "one for the lane between two for Fastify",
      [Buffer.concat([get(), text(way, "ok", [HOST]), get()]), LAST_REQUEST],
    ],
    ["Connection: close", [Buffer.concat([text(way, "ok", [HOST, "connection: close"]), text(way, "ok", [HOST])])]],
    ["HTTP/1.0", [text(way, "ok", [HOST], "1.0")]],
    ["HTTP/1.0 that stays", [text(way, "ok", [HOST, "connection: keep-alive"], "1.0"), LAST_REQUEST]],
    ["no host", [text(way, "ok")]],
    [
      "a head that comes byte by byte",
      [...[...text(way, "ok", [HOST])].map((byte) => Buffer.from([byte])), LAST_REQUEST],
    ],
    ["a body shorter than its length", [text(way, "ok", [HOST]).subarray(0, -1)]],
    ["an upgrade that is not known", [text(way, "ok", [HOST, "connection: upgrade", "upgrade: x"]), LAST_REQUEST]],
  ];

  test.for(cases)("%s", async ([name, parts]) => {
    const ours = await observeOrCut(lane, name, parts);
    expect(ours).toEqual(await observeOrCut(stock, name, parts));
  });

  test("the caller hangs up while the answer is made", async () => {
    for (const subject of [lane, stock]) {
      const id = newId();
      const socket = connect(subject.port, "127.0.0.1");
      const begun = once(subject.calls, "begun");
      const aborted = once(subject.calls, "aborted");
      socket.write(text(way, "wait", [HOST]).toString("latin1").replace("x-request-id: a", `x-request-id: ${id}`));
      await begun;
      socket.destroy();
      expect(await aborted).toEqual([expect.any(Error)]);
      // Of such a call Fastify may write no line.
      if (subject === lane) expect(await subject.log(id)).toEqual([expect.objectContaining(CANCELED)]);
    }
  });

  test("the caller hangs up in the middle of the body", async () => {
    const id = newId();
    const socket = connect(lane.port, "127.0.0.1");
    // HTTP/1.0 is Node's, and the call begins with its head; else nothing begins before the message is whole.
    const bytes = text(way, "ok", [HOST], "1.0").toString("latin1").replace("x-request-id: a", `x-request-id: ${id}`);
    socket.write(bytes.slice(0, -2), () => socket.destroySoon());
    expect(await lane.log(id)).toEqual([expect.objectContaining(CANCELED)]);
  });
});

test("a connection that reads, verifies and changes keys stays in the lane", async () => {
  const issued = "/v2alpha1/admin/issuedApiKeys";
  const line = (text: string, body = "") => {
    const fields = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    return `${text} HTTP/1.1\r\n${HOST}\r\n${fields}\r\n${body}`;
  };
  const requests = [
    line(`GET ${issued}/a`),
    line("POST /v2alpha1/admin/apiKeys:verify", '{"credential":"later"}'),
    line(`GET ${issued}?page_size=1`),
    line(`PATCH ${issued}/a`, '{"name":"b"}'),
    line(`POST ${issued}/a:rotate`, "{}"),
    line("DELETE /v2alpha1/admin/importedApiKeys/a"),
  ];
  const before = lane.passedOn();
  const seen = await observeHttp1(lane.port, [requests.join(""), LAST_REQUEST]);
  expect(seen.map(({ status }) => status)).toEqual([...requests.map(() => 200), 200]);
  expect(lane.passedOn() - before).toBe(1);
});

function get(): Buffer {
  return Buffer.from(`GET /health/alive HTTP/1.1\r\n${HOST}\r\nx-request-id: b\r\n\r\n`);
}

/** A client that has said half a request ends its side, and reads on. */
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
        .replace(/date: [^\r]*/i, ""),
    },
  ];
}

describe.for(http2Ways)("$name", (way) => {
  const head = (id: string) => ({ ":path": pathOf(way), "content-type": way.contentType, "x-request-id": id });

  test("the caller resets the stream while the answer is made", async () => {
    for (const subject of [lane, stock]) {
      const id = newId();
      const aborted = once(subject.calls, "aborted");
      const begun = once(subject.calls, "begun");
      const seen = observeHttp2(subject.url, head(id), [bodyOf(way, { credential: "wait" })], async (stream) => {
        await begun;
        stream.close(constants.NGHTTP2_CANCEL);
      });
      expect(await seen).toMatchObject({ headers: {}, body: "", resetCode: constants.NGHTTP2_CANCEL });
      expect(await aborted).toEqual([expect.any(Error)]);
      if (subject === lane) expect(await subject.log(id)).toEqual([expect.objectContaining(CANCELED)]);
    }
  });

  test("bodies that are refused unread leave the session its window", async () => {
    const session = connectHttp2(lane.url);
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
    // More than the session may send before some of it is read.
    const body = Buffer.alloc(900_000);
    const refused = way.protocol === "grpc" ? 200 : 401;
    for (let i = 0; i < 4; i++) expect(await ask(i % 2 === 0 ? "no" : "no, later", body)).toBe(refused);
    expect(await ask("", bodyOf(way, { credential: "ok" }))).toBe(200);
  });

  test("many streams of one session", async () => {
    const seen = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        send(lane, way, { id: newId(), parts: [bodyOf(way, { credential: `c${i}` })] }),
      ),
    );
    expect(seen.flat().map(({ status, body }, i) => [status, body.includes(`c${i}`)])).toEqual(
      Array(50).fill([200, true]),
    );
  });
});

describe.for(WAYS)("closing: $name", (way) => {
  test("a call under way is answered", async () => {
    const subjects = [await startSubject({}), await startSubject({ lane: false })];
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
    const subjects = [await startSubject(options), await startSubject({ ...options, lane: false })] as const;
    onTestFinished(async () => void (await Promise.all(subjects.map((subject) => subject.close()))));
    return subjects;
  };
  const names = way.http === 1 ? "host" : ":authority";

  test.for(["https://a.example", "https://b.example"])("CORS, origin %s", async (origin) => {
    const subjects = await pair({ corsOrigins: ["https://a.example"] });
    const request = { id: "a", headers: { origin }, parts: [bodyOf(way, { credential: "ok" })] };
    const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
    expect(ours).toEqual(theirs);
    expect(subjects[0].passedOn()).toBeGreaterThan(0);
  });

  test("CORS, no origin: Vary all the same, and no header that only a web page could use", async () => {
    const subjects = await pair({ corsOrigins: ["https://a.example"] });
    const request = { id: "a", parts: [bodyOf(way, { credential: "ok" })] };
    const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
    const exposed = { "access-control-expose-headers": expect.any(String) };
    expect(theirs?.[0]).toEqual({ ...ours?.[0], headers: { ...ours?.[0]?.headers, ...exposed } });
    expect(ours?.[0]?.headers.vary).toBe("Origin");
  });

  test.for(["localhost", "example.com", "127.0.0.1:1", "localhost.example.com"])(
    "names of the loopback, %s",
    async (host) => {
      const subjects = await pair({ loopbackNamesOnly: true });
      const request = { id: "a", headers: { [names]: host }, parts: [bodyOf(way, { credential: "ok" })] };
      const [ours, theirs] = await Promise.all(subjects.map((subject) => send(subject, way, request)));
      expect(ours).toEqual(theirs);
      expect(ours?.[0]?.status).toBe(host.includes("example.com") ? 403 : 200);
    },
  );
});
