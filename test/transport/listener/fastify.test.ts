import { once } from "node:events";
import { Agent, get, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text } from "node:stream/consumers";
import { type FastifyServerOptions, fastify } from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Certificate } from "../../../src/transport/listener/acceptor.ts";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { certificate, http2Client, http2Request, until } from "./support.ts";

async function serve(options: FastifyServerOptions = {}, tls?: Certificate) {
  const port = { certificate: tls, limits: defaultLimits };
  const app = fastify({ ...options, serverFactory: (listener) => new ListenerServer(port, listener) });
  onTestFinished(() => app.close());
  app.all("/seen", async (incoming) => ({
    version: incoming.raw.httpVersion,
    ip: incoming.ip,
    host: incoming.host,
    protocol: incoming.protocol,
    body: incoming.body ?? null,
  }));
  return app;
}

type App = Awaited<ReturnType<typeof serve>>;

async function listen(app: App): Promise<number> {
  await app.listen({ port: 0, host: "127.0.0.1" });
  return (app.server.address() as AddressInfo).port;
}

const JSON_TYPE = { "content-type": "application/json" };

async function post(number: number, path: string, body: string): Promise<IncomingMessage> {
  const outgoing = request({ port: number, host: "127.0.0.1", path, method: "POST", headers: JSON_TYPE, agent: false });
  const [response] = await once(outgoing.end(body), "response");
  return response;
}

describe("Fastify on the port", () => {
  it("receives the same request over HTTP/1.1 and HTTP/2", async () => {
    const app = await serve();
    const number = await listen(app);
    const expected = { ip: "127.0.0.1", host: `127.0.0.1:${number}`, protocol: "http", body: { a: 1 } };
    expect(await json(await post(number, "/seen", '{"a":1}'))).toEqual({ version: "1.1", ...expected });
    const headers = { ":path": "/seen", ":method": "POST", ...JSON_TYPE };
    const http2 = await http2Request(http2Client(number), headers, Buffer.from('{"a":1}'));
    expect(JSON.parse(http2.body.toString())).toEqual({ version: "2.0", ...expected });
  });

  it("has the protocol https with TLS", async () => {
    const tls = certificate("localhost");
    const number = await listen(await serve({}, tls));
    const { body } = await http2Request(http2Client(number, tls), { ":path": "/seen" });
    expect(JSON.parse(body.toString())).toMatchObject({ version: "2.0", protocol: "https" });
  });

  it("uses the port as its server, and injects requests without listening", async () => {
    const app = await serve();
    expect(app.server).toBeInstanceOf(ListenerServer);
    expect((await app.inject("/seen")).json()).toMatchObject({ version: "1.1" });
    await app.close();
  });
});

/** Requests that wait in their handler until the test releases them. */
function holding(app: App) {
  const gate = Promise.withResolvers<void>();
  let held = 0;
  app.get("/held", async () => {
    held++;
    await gate.promise;
    return "finished";
  });
  return { release: () => gate.resolve(), held: () => held };
}

describe("closing Fastify", () => {
  it("completes requests in flight", async () => {
    const app = await serve();
    const { release, held } = holding(app);
    const number = await listen(app);
    const agent = new Agent({ keepAlive: true });
    const http1 = once(get({ port: number, host: "127.0.0.1", path: "/held", agent }), "response");
    const http2 = http2Request(http2Client(number), { ":path": "/held" });
    await until(() => held() === 2);
    const done = app.close();
    release();
    const [response] = await http1;
    expect(await text(response)).toBe("finished");
    expect((await http2).body.toString()).toBe("finished");
    await done;
    expect(app.server.listening).toBe(false);
  });

  it("answers a new request with return503OnClosing false", async () => {
    const app = await serve({ return503OnClosing: false });
    const closing = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    app.addHook("preClose", async () => {
      closing.resolve();
      await gate.promise;
    });
    const number = await listen(app);
    const session = http2Client(number);
    const done = app.close();
    await closing.promise;
    const [http1] = await once(get({ port: number, host: "127.0.0.1", path: "/seen", agent: false }), "response");
    expect(http1.statusCode).toBe(200);
    expect((await http2Request(session, { ":path": "/seen" })).status).toBe(200);
    gate.resolve();
    await done;
  });
});
