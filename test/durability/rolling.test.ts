import { create, fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Serving, serve } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { grpcPath, serializer } from "../support/protocols/grpc.ts";
import { type ReconnectingClient, reconnectingClient } from "../support/reconnecting.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

const NODES = 3;

let database: TestDatabase;
let nodes: Serving[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await Promise.all(Array.from({ length: NODES }, () => start()));
});

afterAll(async () => {
  for (const node of nodes) node.kill("SIGKILL");
  await Promise.all(nodes.map(({ ended }) => ended));
  await database.drop();
});

function start(port = "0"): Promise<Serving> {
  return serve({
    KEYHOLD_PORT: port,
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  });
}

/** Restarts a node on its port. */
async function restart(place: number): Promise<void> {
  const node = nodes[place];
  if (node === undefined) throw new Error(`there is no node ${place}`);
  node.kill("SIGTERM");
  expect(await node.ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  nodes[place] = await start(new URL(node.url).port);
}

/**
 * Verifies over gRPC like any client with three addresses and round_robin. It reconnects as quickly as
 * nodes restart here, and a call waits while no node is connected. A sent call is not retried.
 */
function grpcVerifier(credential: string) {
  const { verifyApiKey } = ApiKeysService.method;
  const target = `ipv4:${nodes.map(({ url }) => new URL(url).host).join(",")}`;
  const roundRobin = JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }], methodConfig: [] });
  const client = new Client(target, credentials.createInsecure(), {
    "grpc.service_config": roundRobin,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 100,
  });
  const verify = () =>
    new Promise<true | string>((resolve, reject) => {
      client.makeUnaryRequest(
        grpcPath(verifyApiKey),
        serializer(verifyApiKey.input),
        (bytes) => fromBinary(verifyApiKey.output, bytes),
        create(verifyApiKey.input, { credential }),
        new Metadata({ waitForReady: true }),
        (error, answer) => (error === null ? resolve(answer?.isValid === true || "not valid") : reject(error)),
      );
    });
  return { verify, close: () => client.close() };
}

/** One call in ten creates a key, which clients do not retry. */
function httpCall(client: ReconnectingClient, credential: string): () => Promise<true | string> {
  let calls = 0;
  return async () => {
    if (++calls % 10 === 0) {
      const made = await client.post(paths.issued, { name: "made meanwhile", actor_id: "actor_1" });
      return made.status === 200 || JSON.stringify(made);
    }
    const verdict = await client.post(`${paths.keys}:verify`, { credential });
    return verdict.body.is_valid === true || JSON.stringify(verdict);
  };
}

test("restarting three nodes one after another fails no request, over HTTP/1.1 and gRPC", async () => {
  const [first] = nodes;
  if (first === undefined) throw new Error("no node");
  const { secret } = await issue(restClient(first));
  const client = reconnectingClient(nodes.map(({ url }) => url));
  const grpc = grpcVerifier(secret);
  // A client without CPU time for as long as a server drains would send a request over a connection that is closed.
  const loads = [startLoad(8, httpCall(client, secret), 1), startLoad(8, grpc.verify, 1)];
  await Promise.all(loads.map(({ more }) => more(200)));
  for (let place = 0; place < NODES; place++) {
    await restart(place);
    await Promise.all(loads.map(({ more }) => more(300)));
  }
  await Promise.all(loads.map(({ stop }) => stop()));
  client.close();
  grpc.close();
  const counts = loads.map(({ count }) => count());
  console.info(`HTTP/1.1: ${counts[0]} requests, ${client.seen.refused} connections refused; gRPC: ${counts[1]}`);
  expect(loads.map(({ failures }) => failures)).toEqual([[], []]);
});
