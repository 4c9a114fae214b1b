import { readFileSync } from "node:fs";
import http, { type IncomingHttpHeaders, type RequestListener } from "node:http";
import https from "node:https";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { Webhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { AddressPolicy, checkedLookup } from "../../../src/webhooks/sending/address-policy.ts";
import { webhookSender } from "../../../src/webhooks/sending/sender.ts";
import { listenLocally } from "../../support/listen.ts";

const LOCAL: AddressPolicy = { allowedCidrs: ["127.0.0.0/8"], proxy: null };
const SECRETS = [Buffer.alloc(32, 0xa1), Buffer.alloc(32, 0xb2)];
const NEVER = new AbortController().signal;

const pem = (name: string) => readFileSync(join(import.meta.dirname, `../../support/tls/${name}.pem`), "utf8");

/** Resolves every name to this machine. */
const toLoopback = ((_name: string, _options: object, callback: (...result: unknown[]) => void) =>
  setImmediate(callback, null, [{ address: "127.0.0.1", family: 4 }])) as unknown as Parameters<
  typeof checkedLookup
>[2];

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    server.close();
    if (server instanceof http.Server || server instanceof https.Server) server.closeAllConnections();
  }
});

async function listen(server: Server): Promise<number> {
  open.push(server);
  return listenLocally(server);
}

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver that records requests and responds with the handler. */
function receiverOf(answer: RequestListener = (_, response) => response.end()) {
  const received: Received[] = [];
  const listener: RequestListener = async (request, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    received.push({ method, url, headers, body });
    answer(request, response);
  };
  return { received, listener };
}

async function startReceiver(answer?: RequestListener) {
  const { received, listener } = receiverOf(answer);
  const port = await listen(http.createServer(listener));
  return { received, url: `http://127.0.0.1:${port}/hook?x=1` };
}

/** A receiver that writes these bytes to each connection. */
async function startRaw(bytes: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write(bytes));
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

type Options = Parameters<typeof webhookSender>[1] & { readonly policy?: AddressPolicy; readonly signal?: AbortSignal };

function send(url: string, { policy = LOCAL, signal = NEVER, ...options }: Options = {}, body = '{"a":1}') {
  const sender = webhookSender(policy, { resolve: toLoopback, ...options });
  return sender.send({ url, id: "msg_1", body, secrets: SECRETS }, signal);
}

describe("a request", () => {
  test("is a POST of JSON that is signed with each secret", async () => {
    const { received, url } = await startReceiver();
    const body = '{"name":"Ünïcödé ✓ \u{1F511}"}';
    expect(await send(url, {}, body)).toEqual({
      status: 200,
      error: null,
      retryAfter: null,
      duration: expect.any(Number),
    });
    expect(received).toEqual([
      {
        method: "POST",
        url: "/hook?x=1",
        body,
        headers: {
          host: new URL(url).host,
          connection: "close",
          "content-type": "application/json",
          "content-length": String(Buffer.byteLength(body)),
          "user-agent": "Keyhold",
          "webhook-id": "msg_1",
          "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
          "webhook-signature": expect.stringMatching(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/),
        },
      },
    ]);
  });

  test("is verified by the official libraries, with either secret and no other", async () => {
    const { received, url } = await startReceiver();
    await send(url);
    const { body = "", headers: all } = received[0] ?? {};
    const headers = all as Record<string, string>;
    for (const Library of [Webhook, SvixWebhook]) {
      for (const secret of SECRETS) {
        const webhook = new Library(`whsec_${secret.toString("base64")}`);
        expect(() => webhook.verify(body, headers)).not.toThrow();
        expect(() => webhook.verify(`${body} `, headers)).toThrow("No matching signature");
        const [first = ""] = String(headers["webhook-signature"]).split(" ");
        if (secret === SECRETS[1])
          expect(() => webhook.verify(body, { ...headers, "webhook-signature": first })).toThrow();
      }
      const other = new Library(`whsec_${Buffer.alloc(32, 3).toString("base64")}`);
      expect(() => other.verify(body, headers)).toThrow("No matching signature");
    }
  });

  test("has the time of the attempt", async () => {
    const { received, url } = await startReceiver();
    for (const now of [1_600_000_000_999, 1_600_000_005_000]) await send(url, { clock: { now: () => now } });
    const times = received.map(({ headers }) => [headers["webhook-id"], headers["webhook-timestamp"]]);
    expect(times).toEqual([
      ["msg_1", "1600000000"],
      ["msg_1", "1600000005"],
    ]);
    expect(new Set(received.map(({ headers }) => headers["webhook-signature"])).size).toBe(2);
  });

  test("resolves the name of the receiver, and states it", async () => {
    const { received, url } = await startReceiver();
    const named = url.replace("127.0.0.1", "hooks.example.com");
    expect(await send(named)).toMatchObject({ status: 200, error: null });
    expect(received[0]?.headers.host).toBe(new URL(named).host);
  });
});

describe("a response", () => {
  test.each([200, 201, 202, 204, 299])("%i succeeds", async (status) => {
    const { url } = await startReceiver((_, response) => response.writeHead(status).end());
    expect(await send(url)).toMatchObject({ status, error: null });
  });

  test.each([400, 401, 404, 410, 429, 500, 503, 599])("%i fails", async (status) => {
    const { url } = await startReceiver((_, response) => response.writeHead(status).end("secret of the receiver"));
    expect(await send(url)).toMatchObject({ status, error: `HTTP ${status}` });
  });

  test.each([300, 301, 302, 303, 304, 307, 308])("%i is not followed", async (status) => {
    const target = await startReceiver();
    const { url, received } = await startReceiver((_, response) =>
      response.writeHead(status, { location: target.url }).end(),
    );
    expect(await send(url)).toMatchObject({ status, error: `HTTP ${status}: redirects are not followed` });
    expect([received.length, target.received.length]).toEqual([1, 0]);
  });

  test("may follow informational ones", async () => {
    const { url } = await startReceiver((_, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</a.css>" });
      response.end();
    });
    expect(await send(url)).toMatchObject({ status: 200, error: null });
  });

  test("may ask to wait", async () => {
    const now = Date.parse("2026-11-27T10:00:00Z");
    let value = "120";
    const { url } = await startReceiver((_, response) => response.writeHead(503, { "retry-after": value }).end());
    const ask = async () => (await send(url, { clock: { now: () => now } })).retryAfter;
    expect(await ask()).toBe(120_000);
    value = "Fri, 27 Nov 2026 10:05:00 GMT";
    expect(await ask()).toBe(300_000);
  });

  test("is read up to a limit", async () => {
    let written = 0;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const { url } = await startReceiver((_, response) => {
      const more = () => {
        while (!response.closed && response.write(Buffer.alloc(16_384))) written += 16_384;
      };
      response.on("drain", more).once("close", end);
      more();
    });
    expect(await send(url)).toMatchObject({ status: 200, error: null });
    await ended;
    // The buffers of both sockets, beside what was read.
    expect(written).toBeLessThan(32 * 2 ** 20);
  });

  test("counts from its head on, even if the body never ends or breaks", async () => {
    const hanging = await startRaw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    expect(await send(hanging, { timeout: 100 })).toMatchObject({ status: 200, error: null });
    const invalid = await startRaw("HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\nzzz\r\n");
    expect(await send(invalid)).toMatchObject({ status: 503, error: "HTTP 503" });
    const { url } = await startReceiver((_, response) => {
      response.write("a");
      setImmediate(() => response.destroy());
    });
    expect(await send(url)).toMatchObject({ status: 200, error: null });
  });
});

/** A time that ends the attempt before the test. */
const SOON = { timeout: 200 };

describe("without a response an attempt fails:", () => {
  test("no connection", async () => {
    const port = await listen(createServer());
    await new Promise((resolve) => open.splice(0)[0]?.close(resolve));
    expect(await send(`http://127.0.0.1:${port}`)).toMatchObject({
      status: null,
      error: "request failed: ECONNREFUSED",
      retryAfter: null,
    });
  });

  test("unknown name", async () => {
    const resolve = (_name: string, _options: object, callback: (error: Error) => void) =>
      callback(Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND" }));
    const options = { resolve: resolve as unknown as Options["resolve"] };
    expect(await send("http://hooks.example.com", options)).toMatchObject({ error: "request failed: ENOTFOUND" });
  });

  test("a name that is not resolved in time", async () => {
    const resolve = (() => {}) as unknown as Options["resolve"];
    expect(await send("http://hooks.example.com", { ...SOON, resolve })).toMatchObject({
      status: null,
      error: "no response within 0.2 s",
    });
  });

  test("a receiver that hangs", async () => {
    const { url } = await startReceiver(() => {});
    const outcome = await send(url, SOON);
    expect(outcome).toMatchObject({ status: null, error: "no response within 0.2 s" });
    expect(outcome.duration).toBeGreaterThan(150);
  });

  test("a receiver that sends its response byte by byte", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      const timer = setInterval(() => socket.write("x-a: b\r\n"), 20);
      socket.write("HTTP/1.1 200 OK\r\n");
      socket.once("close", () => clearInterval(timer));
    });
    expect(await send(`http://127.0.0.1:${await listen(server)}`, SOON)).toMatchObject({ status: null });
  });

  test.each([
    ["SSH-2.0-OpenSSH_9.9\r\n", /HPE_/],
    [`HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}\r\n\r\n`, /HPE_HEADER_OVERFLOW/],
    ["HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", /^request failed$/],
    ["HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", /HPE_/],
    ["\xff\xfe\0\0", /HPE_/],
  ])("no valid HTTP: %j", async (bytes, error) => {
    const outcome = await send(await startRaw(bytes), { timeout: 2_000 });
    expect(outcome).toMatchObject({ status: null, error: expect.stringMatching(error) });
    expect(outcome.error?.length).toBeLessThan(100);
  });

  test("a connection that is reset", async () => {
    const server = createServer((socket) => socket.resetAndDestroy());
    const url = `http://127.0.0.1:${await listen(server)}`;
    expect(await send(url)).toMatchObject({ error: "request failed: ECONNRESET" });
  });
});

describe("an aborted attempt", () => {
  test("rejects with the reason, and closes the connection", async () => {
    const closed = Promise.withResolvers<void>();
    const stop = new AbortController();
    const { url } = await startReceiver((request) => {
      request.socket.once("close", () => closed.resolve());
      stop.abort(new Error("the server stops"));
    });
    await expect(send(url, { signal: stop.signal })).rejects.toThrow("the server stops");
    await closed.promise;
  });

  test("is not begun", async () => {
    const { url, received } = await startReceiver();
    await expect(send(url, { signal: AbortSignal.abort(new Error("stopped")) })).rejects.toThrow("stopped");
    expect(received).toEqual([]);
  });
});

describe("over https", () => {
  beforeAll(() => {
    const system = tls.getCACertificates("default");
    tls.setDefaultCACertificates([...system, pem("ca.cert")]);
    return () => tls.setDefaultCACertificates(system);
  });

  async function startTls(certificate: string) {
    const { received, listener } = receiverOf();
    const options = { cert: pem(`${certificate}.cert`), key: pem(`${certificate}.key`) };
    return { received, port: await listen(https.createServer(options, listener)) };
  }

  test("a certificate of a trusted authority is accepted, for a name and an address", async () => {
    const { received, port } = await startTls("issued");
    for (const host of ["localhost", "127.0.0.1"])
      expect(await send(`https://${host}:${port}`)).toMatchObject({ status: 200, error: null });
    expect(received).toHaveLength(2);
  });

  test("another certificate is rejected, whatever the environment allows", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    try {
      const selfSigned = await startTls("renewed");
      expect(await send(`https://localhost:${selfSigned.port}`)).toMatchObject({
        status: null,
        error: "request failed: DEPTH_ZERO_SELF_SIGNED_CERT",
      });
      const issued = await startTls("issued");
      expect(await send(`https://hooks.example.com:${issued.port}`)).toMatchObject({
        error: "request failed: ERR_TLS_CERT_ALTNAME_INVALID",
      });
      expect([...selfSigned.received, ...issued.received]).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("a receiver without TLS is no receiver", async () => {
    const { url, received } = await startReceiver();
    expect(await send(url.replace("http:", "https:"))).toMatchObject({ status: null });
    expect(received).toEqual([]);
  });

  describe("and through a proxy", () => {
    /** A proxy that connects all requests to one port of this machine, and records what they ask for. */
    async function startProxy(target: number, { status = 200, isTls = false } = {}) {
      const requests: unknown[] = [];
      const listener: RequestListener = (request, response) => {
        requests.push(request.url);
        request.pipe(
          http.request({ port: target, method: request.method, headers: request.headers }, (answer) => {
            response.writeHead(answer.statusCode ?? 502);
            answer.pipe(response);
          }),
        );
      };
      const server = isTls
        ? https.createServer({ cert: pem("issued.cert"), key: pem("issued.key") }, listener)
        : http.createServer(listener);
      server.on("connect", (request, socket) => {
        requests.push([request.url, request.headers["proxy-authorization"]]);
        socket.on("error", () => {});
        if (status !== 200) return socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
        const upstream = connect(target, "127.0.0.1", () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          upstream.pipe(socket).pipe(upstream);
        });
        upstream.on("error", () => socket.destroy());
      });
      return { requests, port: await listen(server) };
    }

    const through = (port: number, scheme = "http") => {
      const proxy = `${scheme}://user:p4ssw0rd@localhost:${port}`;
      const resolve = () => expect.unreachable("the proxy resolves names");
      return { policy: { ...LOCAL, proxy }, resolve: resolve as unknown as Options["resolve"] };
    };

    test.each(["http", "https"])("over %s, TLS is with the receiver, whose name the proxy resolves", async (scheme) => {
      const receiver = await startTls("issued");
      const { requests, port } = await startProxy(receiver.port, { isTls: scheme === "https" });
      expect(await send("https://localhost:8443/hook", through(port, scheme))).toMatchObject({ status: 200 });
      const authorization = `Basic ${Buffer.from("user:p4ssw0rd").toString("base64")}`;
      expect(requests).toEqual([["localhost:8443", authorization]]);
      expect(receiver.received[0]?.headers["proxy-authorization"]).toBeUndefined();
      expect(await send("https://hooks.example.com:8443", through(port, scheme))).toMatchObject({
        error: "request failed: ERR_TLS_CERT_ALTNAME_INVALID",
      });
      expect(receiver.received).toHaveLength(1);
    });

    test("an allowed address is sent to over http", async () => {
      const { received, url } = await startReceiver();
      const { requests, port } = await startProxy(Number(new URL(url).port));
      expect(await send(url, through(port))).toMatchObject({ status: 200, error: null });
      expect(requests).toEqual([url]);
      expect(received).toHaveLength(1);
    });

    test("an address that is not allowed is not asked for", async () => {
      const { requests, port } = await startProxy(1);
      for (const url of ["https://10.0.0.1", "http://169.254.169.254", "http://hooks.example.com"])
        expect(await send(url, through(port))).toMatchObject({ status: null });
      expect(requests).toEqual([]);
    });

    test("a proxy that rejects the request is reported without its password", async () => {
      const { port } = await startProxy(1, { status: 403 });
      expect(await send("https://hooks.example.com", through(port))).toMatchObject({
        error: "request failed: ERR_PROXY_TUNNEL",
      });
    });
  });
});
