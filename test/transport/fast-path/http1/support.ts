import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Call } from "../../../../src/api/rpc.ts";
import type { Answer, CallContext, FastRoute } from "../../../../src/transport/fast-path/call.ts";
import { createHttp1Connections } from "../../../../src/transport/fast-path/http1.ts";
import type { Certificate } from "../../../../src/transport/listener/acceptor.ts";
import { defaultLimits, type ListenerLimits } from "../../../../src/transport/listener/limits.ts";
import type { RequestInterceptor } from "../../../../src/transport/listener/request-interceptor.ts";
import { ListenerServer } from "../../../../src/transport/listener/server.ts";
import { createAccessLogWriter, uncounted } from "../../../../src/transport/pipeline/access-log.ts";
import { createOutageLog } from "../../../../src/transport/pipeline/outage-log.ts";
import { BodyBudget } from "../../../../src/transport/wire/request-body.ts";
import { listenLocally } from "../../../support/listen.ts";
import { operator } from "../../../support/principal.ts";
import { stop } from "../../listener/support.ts";

/** Returns a parsed request as JSON; equal requests have equal text. Several values are joined as Node does. */
function understood(method: string, target: string, headers: object, body: Uint8Array): string {
  const joined = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) && name !== "set-cookie" ? value.join(name === "cookie" ? "; " : ", ") : value,
  ]);
  const fields = joined.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify({ method, target, fields, body: Buffer.from(body).toString("latin1") });
}

function fieldsOf(body: string): string[] {
  return ["content-type", "application/json", "content-length", String(Buffer.byteLength(body))];
}

/** With the objects of `node:http`. */
const echoByNode = async (request: IncomingMessage, response: ServerResponse) => {
  const { method = "", url = "", headers } = request;
  const body = understood(method, url, headers, await buffer(request));
  response.writeHead(200, fieldsOf(body));
  response.end(body);
};

/** The response to malformed HTTP. */
export const BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

/** A request that the interceptor has accepted. */
export interface Accepted {
  readonly method: string;
  readonly target: string;
  readonly headers: object;
  readonly body: Uint8Array;
  /** Resolves when the client has disconnected. */
  readonly cancelled: Promise<void>;
  respond(answer: Answer): void;
}

export interface EchoServer {
  readonly port: number;
  /** Number of requests that the interceptor served, and that `node:http` served. */
  readonly counts: { front: number; node: number };
  /** Emits "waiting" with each `Accepted` for /wait; the test responds. */
  readonly waiting: EventEmitter;
  readonly server: ListenerServer;
}

export interface EchoOptions {
  readonly front?: boolean;
  readonly limits?: Partial<ListenerLimits>;
  readonly certificate?: Certificate;
}

const { verifyApiKey } = ApiKeysService.method;
const logger = pino({ enabled: false });
const context: CallContext = {
  logger,
  counters: uncounted,
  outages: createOutageLog(logger),
  budget: new BodyBudget(0),
  writeEntry: createAccessLogWriter(logger),
  start: (call) => call.run(),
};

/** A port that answers each request with its parsed form; its interceptor declines those below /node. */
export async function startEcho({ front = true, limits, certificate }: EchoOptions = {}): Promise<EchoServer> {
  const counts = { front: 0, node: 0 };
  const waiting = new EventEmitter();
  const allLimits = { ...defaultLimits, ...limits };
  const interceptor: RequestInterceptor = {
    http1: (node) =>
      createHttp1Connections({
        node,
        limits: allLimits,
        context,
        find({ method, target, headers }) {
          if (target.startsWith("/node")) return undefined;
          return echoRoute(({ call, body }) => {
            counts.front++;
            const result = Promise.withResolvers<Answer>();
            const cancelled = Promise.withResolvers<void>();
            call.log.onEnd((code) => code === "CANCELLED" && cancelled.resolve());
            const accepted = { method, target, headers, body, cancelled: cancelled.promise, respond: result.resolve };
            if (target !== "/wait") return echoed(accepted);
            waiting.emit("waiting", accepted);
            return result.promise;
          });
        },
      }),
    takeRequest: () => false,
    takeStream: () => false,
    closeStream: () => undefined,
  };
  const options = { ...(certificate && { certificate }), limits: allLimits, ...(front && { interceptor }) };
  const server = new ListenerServer(options, (request, response) => {
    counts.node++;
    // A truncated one has been refused by then.
    void echoByNode(request, response).catch(() => undefined);
  });
  server.on("clientError", (_, socket) => {
    if (socket.writable) socket.write(BAD_REQUEST);
    socket.destroy();
  });
  onTestFinished(() => stop(server));
  return { port: await listenLocally(server), counts, waiting, server };
}

export function answer(accepted: Accepted): void {
  accepted.respond(echoed(accepted));
}

function echoed({ method, target, headers, body }: Omit<Accepted, "cancelled" | "respond">): Answer {
  const text = understood(method, target, headers, body);
  return { status: 200, headers: fieldsOf(text), body: method === "HEAD" ? "" : text };
}

/** A route whose RPC returns what `serve` does. */
function echoRoute(serve: (request: { call: Call; body: Uint8Array }) => Answer | Promise<Answer>): FastRoute {
  let known: Answer | undefined;
  let body = new Uint8Array();
  const note = (answer: Answer) => {
    known = answer;
    return {};
  };
  return {
    rpc: {
      admit: () => operator,
      invoke: (_request, _principal, call) => {
        const result = serve({ call, body });
        return result instanceof Promise ? result.then(note) : note(result);
      },
    },
    protocol: "rest",
    name: "test",
    counter: { end: () => {} },
    maxBodyBytes: 2 ** 17,
    decode: (bytes) => {
      body = Uint8Array.from(bytes);
      return create(verifyApiKey.input);
    },
    answer: () => known ?? INTERNAL,
    reject: () => INTERNAL,
  };
}

const INTERNAL: Answer = { status: 500, headers: ["content-length", "0"], body: "" };

/** Sends each part separately, then closes the sending side; returns everything the server sent. */
export async function conversation(port: number, parts: readonly Buffer[]): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  const received: Buffer[] = [];
  socket.on("data", (chunk) => received.push(Buffer.from(chunk))).on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const part of parts) {
    await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }
  socket.end();
  socket.once("end", () => socket.destroy());
  await closed;
  return Buffer.concat(received)
    .toString("latin1")
    .replaceAll(/^Date: .*$/gm, "Date: varies");
}
