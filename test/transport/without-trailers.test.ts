import { connect, createServer, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Health, HealthCheckRequestSchema, HealthCheckResponse_ServingStatus } from "../../gen/health/v1/health_pb.js";
import { useService } from "../support/conformance.ts";
import { listenLocally } from "../support/listen.ts";
import { rpcPath } from "../support/wire.ts";

const suite = useService();

/** A proxy that drops trailers. */
const proxy = createServer();
let url: string;

beforeAll(async () => {
  const upstream = connect(suite.server.url);
  proxy.on("stream", (stream: ServerHttp2Stream, { ":authority": _, ...headers }) => {
    const request = upstream.request(headers);
    request.on("response", ({ ":status": status, ...fields }) => stream.respond({ ":status": status, ...fields }));
    stream.pipe(request).pipe(stream);
  });
  proxy.on("close", () => upstream.destroy());
  url = `http://127.0.0.1:${await listenLocally(proxy)}`;
});

afterAll(() => {
  proxy.close();
});

test("behind a proxy that drops trailers gRPC fails, and gRPC-Web and Connect work", async () => {
  const client = new Client(new URL(url).host, credentials.createInsecure());
  const request = Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema)));
  const same = (bytes: Buffer) => bytes;
  const failure = new Promise((resolve) =>
    client.makeUnaryRequest(rpcPath(Health.method.check), same, same, request, resolve),
  );
  await expect(failure).resolves.toMatchObject({ message: expect.stringContaining("Call ended without gRPC status") });
  client.close();
  for (const createTransport of [createGrpcWebTransport, createConnectTransport]) {
    const { status } = await createClient(Health, createTransport({ baseUrl: url, httpVersion: "2" })).check({});
    expect(status).not.toBe(HealthCheckResponse_ServingStatus.UNKNOWN);
  }
});
