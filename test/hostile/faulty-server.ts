import { once } from "node:events";
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { createServer } from "node:net";
import postgres from "postgres";
import { createRegistry } from "../../src/observability/metrics/registry.ts";
import { uncaughtMetric } from "../../src/server/metrics.ts";
import { sniff } from "../../src/transport/listener/acceptor.ts";
import { listenLocally } from "../support/listen.ts";
import { frame } from "../support/wire.ts";

/**
 * A server with every defect that the runner must detect, each at its own path, for `runner.test.ts`. It serves well-behaved clients like
 * Keyhold. DATABASE_URL names the database, VICTIM the key that an incomplete request changes.
 */

const sql = postgres(process.env.DATABASE_URL ?? "", { max: 1 });
const retained: Buffer[] = [];
let uncaught = 0;

/** Milliseconds of CPU time of this thread. */
function computed(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const PATHS: Readonly<Record<string, Answer>> = {
  "/die": () => process.exit(3),
  "/fault": (_, response) => response.writeHead(500).end(),
  "/stall": (_, response) => {
    const end = computed() + 400;
    while (computed() < end);
    response.end();
  },
  "/leak": (_, response) => {
    retained.push(Buffer.alloc(2 ** 26, 1));
    response.end();
  },
  "/uncaught": (_, response) => {
    uncaught++;
    response.end();
  },
  "/log": (_, response) => {
    process.stdout.write(`${JSON.stringify({ level: 50, msg: "an error" })}\n`);
    response.end();
  },
  // Closes the connection after the change, which tells the client that the change is done.
  "/unfinished": async (request) => {
    const { socket } = request;
    request.on("error", () => {});
    await once(request, "data");
    await sql`UPDATE api_keys SET name = name || '.' WHERE key_id = ${process.env.VICTIM ?? ""}`;
    socket.destroy();
  },
};

const http1 = createHttp1((request, response) => {
  const answer = PATHS[request.url ?? ""];
  if (answer !== undefined) answer(request, response);
  else response.setHeader("content-type", "application/json").end('{"is_valid":true}');
});
const http2 = createHttp2().on("stream", (stream: ServerHttp2Stream) => {
  stream.on("error", () => {});
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(frame(Buffer.alloc(0)));
});
const server = createServer((socket) => {
  socket.on("error", () => {});
  sniff(socket, (protocol) => (protocol === "http1" ? http1 : http2).emit("connection", socket));
});

const registry = createRegistry([uncaughtMetric(() => uncaught)], {});
const metrics = createHttp1(async (_, response) => void response.end(await registry.metrics()));

console.info(JSON.stringify({ level: 30, metrics: `http://127.0.0.1:${await listenLocally(metrics)}/metrics` }));
console.info(JSON.stringify({ level: 30, url: `http://127.0.0.1:${await listenLocally(server)}` }));
