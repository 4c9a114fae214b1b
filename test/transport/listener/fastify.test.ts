import { once } from "node:events";
import { Agent, get, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text } from "node:stream/consumers";
import { create, createFileRegistry, type DescMethodUnary, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
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

  it("refuses a body over its limit over HTTP/2 and keeps the session", async () => {
    const number = await listen(await serve({ bodyLimit: 1_000 }));
    const session = http2Client(number);
    const headers = { ":path": "/seen", ":method": "POST", ...JSON_TYPE };
    const { status } = await http2Request(session, headers, Buffer.from(JSON.stringify("a".repeat(200_000))));
    expect(status).toBe(413);
    expect((await http2Request(session, { ":path": "/seen" })).status).toBe(200);
  });

  it("writes trailers over both protocols", async () => {
    const app = await serve();
    app.get("/trailer", async (_, reply) => {
      reply.trailer("x-sum", async () => "7");
      return "body";
    });
    const number = await listen(app);
    const [http1] = await once(get({ port: number, host: "127.0.0.1", path: "/trailer", agent: false }), "response");
    await text(http1);
    expect(http1.trailers).toEqual({ "x-sum": "7" });
    const stream = http2Client(number).request({ ":path": "/trailer" }).resume();
    const [trailers] = await once(stream, "trailers");
    expect(trailers).toMatchObject({ "x-sum": "7" });
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
  it.for([[undefined], ["idle"], [false]] as const)(
    "with forceCloseConnections %s: completes requests in flight",
    async ([mode]) => {
      const app = await serve(mode === undefined ? {} : { forceCloseConnections: mode });
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
    },
  );

  it("with forceCloseConnections true: destroys connections of both protocols", async () => {
    const app = await serve({ forceCloseConnections: true });
    const { held } = holding(app);
    const number = await listen(app);
    const http1 = expect(once(get({ port: number, host: "127.0.0.1", path: "/held" }), "response")).rejects.toThrow(
      "hang up",
    );
    const stream = http2Client(number).request({ ":path": "/held" });
    await until(() => held() === 2);
    await Promise.all([app.close(), http1, once(stream, "close")]);
  });

  it.for([
    [true, 503],
    [false, 200],
  ] as const)("with return503OnClosing %s: answers a new request with %i", async ([return503OnClosing, status]) => {
    const app = await serve({ return503OnClosing });
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
    expect(http1.statusCode).toBe(status);
    expect((await http2Request(session, { ":path": "/seen" })).status).toBe(status);
    gate.resolve();
    await done;
  });
});

/** `rpc Say(StringValue) returns (StringValue)`, without generated code. */
function sayMethod(): DescMethodUnary<typeof StringValueSchema, typeof StringValueSchema> {
  const [input, output] = [StringValueSchema.typeName, StringValueSchema.typeName].map((name) => `.${name}`);
  const file = create(FileDescriptorProtoSchema, {
    name: "echo.proto",
    package: "port.test",
    syntax: "proto3",
    dependency: [StringValueSchema.file.proto.name],
    service: [{ name: "EchoService", method: [{ name: "Say", inputType: input, outputType: output }] }],
  });
  const service = createFileRegistry(file, () => StringValueSchema.file).getService("port.test.EchoService");
  const method = service?.methods[0];
  if (method?.methodKind !== "unary") throw new Error("no such method");
  return { ...method, methodKind: "unary", input: StringValueSchema, output: StringValueSchema };
}

const say = sayMethod();

/** Echoes the message, also in a header and a trailer; an empty one is an error. */
async function serveConnect(tls?: Certificate): Promise<number> {
  const app = await serve({}, tls);
  await app.register(fastifyConnectPlugin, {
    routes: (router) => {
      router.rpc(say, ({ value }, context) => {
        if (value === "") throw new ConnectError("say something", Code.InvalidArgument);
        context.responseHeader.set("x-header", "leading");
        context.responseTrailer.set("x-trailer", "trailing");
        return { value: `${value}!` };
      });
    },
  });
  return listen(app);
}

const transports = {
  "Connect on HTTP/1.1": (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect on HTTP/2": (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" }),
  "gRPC-Web on HTTP/1.1": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web on HTTP/2": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  "gRPC on HTTP/2": (baseUrl: string) => createGrpcTransport({ baseUrl }),
} satisfies Record<string, (baseUrl: string) => Transport>;

describe("Connect's plugin for Fastify on the port", () => {
  it.for(Object.entries(transports))("%s", async ([, createTransport]) => {
    const number = await serveConnect();
    const transport = createTransport(`http://127.0.0.1:${number}`);
    const call = (value: string) => transport.unary(say, undefined, undefined, undefined, { value });
    const { message, header, trailer } = await call("hello");
    expect(message.value).toBe("hello!");
    expect(header.get("x-header")).toBe("leading");
    expect(trailer.get("x-trailer")).toBe("trailing");
    await expect(call("")).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage: "say something" });
  });

  it.for([
    ["plain text", undefined],
    ["TLS", certificate("localhost")],
  ] as const)("grpc-js over %s", async ([, tls]) => {
    const number = await serveConnect(tls);
    const channel = tls ? credentials.createSsl(Buffer.from(tls.cert)) : credentials.createInsecure();
    const client = new Client(`127.0.0.1:${number}`, channel, { "grpc.ssl_target_name_override": "localhost" });
    onTestFinished(() => client.close());
    const call = (value: string) =>
      new Promise<string | undefined>((resolve, reject) => {
        client.makeUnaryRequest(
          "/port.test.EchoService/Say",
          (text: string) => Buffer.from(toBinary(StringValueSchema, create(StringValueSchema, { value: text }))),
          (bytes) => fromBinary(StringValueSchema, bytes).value,
          value,
          (error: ServiceError | null, answer) => (error ? reject(error) : resolve(answer)),
        );
      });
    expect(await call("hello")).toBe("hello!");
    await expect(call("")).rejects.toMatchObject({ code: 3, details: "say something" });
  });
});
