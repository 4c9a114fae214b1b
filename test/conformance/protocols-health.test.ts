import { create, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "../../gen/health/v1/health_pb.js";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { defaultLimits } from "../../src/transport/listener/limits.ts";
import { table } from "../support/conformance.ts";
import { grpcPath, serializer } from "../support/protocols/grpc.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { callGrpc, frame, rpcPath, send } from "../support/wire.ts";

let server: TestServer;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await startTestServer();
  proxy = await TcpProxy.start(server.databaseUrl);
  await server.restart({ KEYHOLD_DATABASE_URL: proxy.url });
});
afterAll(async () => {
  await server.close();
  await proxy.close();
});

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

describe("Check", () => {
  const rpcProtocols = () => {
    const protocols = openProtocols(server);
    onTestFinished(() => protocols.forEach((protocol) => void protocol.close()));
    return protocols.filter(({ name }) => name !== "REST");
  };

  test.for(["", ...SERVICES.map(({ typeName }) => typeName)])(
    "reports the service %j over every protocol",
    async (service) => {
      for (const { name, call } of rpcProtocols()) {
        expect(await call(Health.method.check, { service }), name).toMatchObject({ message: { status: SERVING } });
      }
    },
  );

  test("answers NOT_FOUND for an unknown service", async () => {
    for (const { name, call } of rpcProtocols()) {
      expect(await call(Health.method.check, { service: "keyhold.v1.Nothing" }), name).toMatchObject({
        code: "NOT_FOUND",
      });
    }
  });
});

type Statuses = AsyncIterator<HealthCheckResponse_ServingStatus>;
type Watch = (service: string) => Statuses;

const CLIENTS: Readonly<Record<string, () => Watch>> = {
  "gRPC by grpc-js": () => {
    const client = new Client(server.address, credentials.createInsecure());
    onTestFinished(() => client.close());
    return (service) => watchByGrpcJs(client, service);
  },
  "gRPC-Web by connect-web": () => watchBy(createGrpcWebTransport({ baseUrl: server.url })),
  "Connect by connect-node": () => watchBy(createConnectTransport({ baseUrl: server.url, httpVersion: "1.1" })),
  "gRPC by connect-node": () => watchBy(createGrpcTransport({ baseUrl: server.url })),
};

async function* watchByGrpcJs(client: Client, service: string) {
  const request = create(HealthCheckRequestSchema, { service });
  const call = client.makeServerStreamRequest(
    grpcPath(Health.method.watch),
    serializer(HealthCheckRequestSchema),
    (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
    request,
    new Metadata(),
  );
  onTestFinished(() => call.cancel());
  for await (const { status } of call) yield status;
}

function watchBy(transport: Transport): Watch {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const { watch } = createClient(Health, transport);
  return async function* (service) {
    for await (const { status } of watch({ service }, { signal: abort.signal })) yield status;
  };
}

describe("Watch, over every protocol", () => {
  const watchAll = (service: string) => table(Object.values(CLIENTS)).map((open) => open()(service));
  const nextOfAll = async (all: readonly Statuses[]) =>
    (await Promise.all(all.map((one) => one.next()))).map(yieldedValue);
  const all = (status: HealthCheckResponse_ServingStatus) => Object.values(CLIENTS).map(() => status);

  test("sends the status at once, and again when it changes", async () => {
    const watches = watchAll("");
    expect(await nextOfAll(watches)).toEqual(all(SERVING));
    await proxy.down();
    expect(await nextOfAll(watches)).toEqual(all(NOT_SERVING));
    await proxy.up();
    expect(await nextOfAll(watches)).toEqual(all(SERVING));
  });

  test("waits for an unknown service", async () => {
    expect(await nextOfAll(watchAll("keyhold.v1.Nothing"))).toEqual(all(SERVICE_UNKNOWN));
  });

  test("ends with DEADLINE_EXCEEDED at the deadline of a client that leaves it to the server", async () => {
    const path = rpcPath(Health.method.watch);
    const none = frame(Buffer.alloc(0));
    const grpc = await callGrpc(server.url, path, none, { "grpc-timeout": "50m" });
    expect(grpc).toMatchObject({ status: Code.DeadlineExceeded, data: frame(Buffer.from([0x08, SERVING])) });
    const type = "application/grpc-web+proto";
    const web = await send(server.url + path, "POST", none, { "content-type": type, "grpc-timeout": "50m" });
    expect(web.text).toContain("grpc-status: 4\r\n");
    const streaming = { "content-type": "application/connect+proto", "connect-timeout-ms": "50" };
    expect((await send(server.url + path, "POST", none, streaming)).text).toContain('"code":"deadline_exceeded"');
  });

  test("sends NOT_SERVING when the server stops, and does not delay the stop", async () => {
    const watches = watchAll("");
    expect(await nextOfAll(watches)).toEqual(all(SERVING));
    const restarted = server.restart({ KEYHOLD_DATABASE_URL: proxy.url });
    const started = performance.now();
    expect(await Promise.all(watches.map(rest))).toEqual(watches.map(() => [NOT_SERVING]));
    expect(performance.now() - started).toBeLessThan(defaultLimits.closeTimeout / 2);
    await restarted;
  });
});

function yieldedValue<T>({ value }: IteratorResult<T>): T {
  return value;
}

/** The statuses until the stream ends or the connection is lost. */
async function rest(statuses: Statuses): Promise<unknown[]> {
  const values: unknown[] = [];
  try {
    for (let next = await statuses.next(); !next.done; next = await statuses.next()) values.push(next.value);
  } catch (reason) {
    expect(ConnectError.from(reason).code).toBe(Code.Unavailable);
  }
  return values;
}
