import { EventEmitter, once } from "node:events";
import { Writable } from "node:stream";
import type { DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { BadRequestSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Handler, Implementation } from "../../../src/api/row.ts";
import { createGuard, type Guard } from "../../../src/auth/guard.ts";
import { unauthenticated } from "../../../src/auth/rejected-credential.ts";
import { invalidArgument, KeyholdError } from "../../../src/domain/errors.ts";
import { createServer, type ServerOptions } from "../../../src/transport/server.ts";
import { bareServer } from "../../support/bare-server.ts";
import type { Json } from "../../support/rest.ts";

type Respond<M extends DescMethodUnary> = (
  request: MessageShape<M["input"]>,
  ...admitted: Parameters<ReturnType<Handler<M>>>
) => ReturnType<ReturnType<Handler<M>>>;
type Verify = Respond<typeof ApiKeysService.method.verifyApiKey>;

/** In bytes; small, so that a body above it is sent quickly. */
export const MAX_REQUEST_BYTES = 4096;
const MAX_BATCH_BYTES = 2 ** 20;

/** One of the two compared servers. */
export interface Subject {
  readonly url: string;
  readonly port: number;
  /** Requests that Fastify has received. */
  readonly passedOn: () => number;
  /** Returns the log lines of a request by its id, once the last one is written, without values that differ between calls. */
  log(requestId: string): Promise<Json[]>;
  /** Emits "begun", and "ended" with the code, for calls that wait. */
  readonly calls: EventEmitter;
  close(): Promise<unknown>;
}

export async function startSubject(options: Partial<ServerOptions>): Promise<Subject> {
  const calls = new EventEmitter();
  const log = createLog();
  const fastify = await createServer({
    ...bareServer(),
    implementations: implementations(calls),
    guard,
    logger: pino({ base: null, timestamp: false }, log.stream),
    ...options,
  });
  const passedOn = countRequests(fastify);
  const url = await fastify.listen({ host: "127.0.0.1", port: 0, listenTextResolver: () => "" });
  return { url, port: Number(new URL(url).port), passedOn, log: log.of, calls, close: () => fastify.close() };
}

function countRequests(fastify: FastifyInstance): () => number {
  let count = 0;
  fastify.addHook("onResponse", async () => {
    count++;
  });
  return () => count;
}

function createLog() {
  const lines: Json[] = [];
  const written = new EventEmitter().setMaxListeners(0);
  const stream = new Writable({
    write(chunk, _encoding, done) {
      const { duration_ms, ...line } = JSON.parse(String(chunk));
      lines.push(line);
      written.emit("line");
      done();
    },
  });
  const ofRequest = (id: string) => lines.filter(({ reqId }) => reqId === id);
  const of = async (id: string) => {
    while (!ofRequest(id).some(({ msg }) => msg === "request")) await once(written, "line");
    return ofRequest(id).map(({ reqId, err, ...line }) => (err === undefined ? line : { ...line, err: err.message }));
  };
  return { stream, of };
}

const openGuard = createGuard({ authenticators: [], allowUnauthenticated: true });

/** A caller with "no" is rejected; "later" delays the result by one tick of the event loop. */
const guard: Guard = (rpc, call) => {
  const authorization = call.header("authorization") ?? "";
  if (authorization === "no") throw unauthenticated("the credential is no good", { reason: "NOT_FOUND" });
  if (authorization === "no, later")
    return Promise.reject(unauthenticated("the credential is no good", { reason: "NOT_FOUND" }));
  const principal = openGuard(rpc, call);
  return authorization === "later" ? Promise.resolve(principal) : principal;
};

function implementations(calls: EventEmitter): Implementation[] {
  const { verifyApiKey, batchVerifyApiKeys, deriveToken } = ApiKeysService.method;
  const handler: Verify = (request, ...admitted) => (BEHAVIOURS[request.credential] ?? echo)(request, ...admitted);
  const waiting: Verify = async (request, _principal, call) => {
    calls.emit("begun");
    calls.emit("ended", await new Promise((resolve) => call.log.onEnd(resolve)));
    return { actorId: request.credential };
  };
  const verify: Verify = (request, ...admitted) =>
    request.credential === "wait" ? waiting(request, ...admitted) : handler(request, ...admitted);
  const batch: Respond<typeof batchVerifyApiKeys> = ({ requests }) => ({
    results: requests.map(({ credential }) => ({ actorId: credential })),
  });
  const derive: Respond<typeof deriveToken> = ({ credential: token, ttl: tokenId = "", scopes, ...request }) => ({
    token: { token, tokenId, expireTime: timestamp, scopes, claims: request.customClaims ?? {}, audience: [] },
  });
  return [
    rpc(verifyApiKey, verify, MAX_REQUEST_BYTES),
    rpc(batchVerifyApiKeys, batch, MAX_BATCH_BYTES),
    rpc(deriveToken, derive, MAX_REQUEST_BYTES),
  ];
}

function rpc<M extends DescMethodUnary>(method: M, respond: Respond<M>, maxRequestBytes: number): Implementation {
  const handler: Handler<M> =
    (request) =>
    (...admitted) =>
      respond(request, ...admitted);
  return { method, handler, policy: "keyhold:verify", idempotency: "idempotent", maxRequestBytes };
}

const echo: Verify = ({ credential }) => ({
  isValid: true,
  actorId: credential,
  scopes: ["read", 'é\u2028"\\'],
  metadata: { team: "🔑" },
  expireTime: timestamp,
});

const timestamp = { $typeName: "google.protobuf.Timestamp", seconds: 1_900_000_000n, nanos: 120_000_000 } as const;

/** Results by credential. */
const BEHAVIOURS: Readonly<Record<string, Verify>> = {
  later: async (request, ...admitted) => echo(request, ...admitted),
  headers: (request, principal, call) => {
    call.setHeader("cache-control", "private");
    call.setHeader("ETag", '"a"');
    call.setHeader("x-seen", call.header("x-sent") ?? "nothing");
    return echo(request, principal, call);
  },
  "headers, then error": (_request, _principal, call) => {
    call.setHeader("x-seen", "1");
    throw invalidArgument("credential", "is one of those");
  },
  large: () => ({ actorId: "a".repeat(3000), errorMessage: "é".repeat(100) }),
  fault: () => {
    throw new Error("the cause, which no caller may see");
  },
  "fault, later": () => Promise.reject(new Error("the cause, which no caller may see")),
  unavailable: () => {
    throw new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable", { metadata: { since: "10" } });
  },
  "precondition, later": () => Promise.reject(new KeyholdError("API_KEY_REVOKED", "100% & “revoked”")),
  "error with metadata": () => {
    const metadata = { "x-a": "1", "x-b-bin": "AQI", "content-type": "text/none", "grpc-status": "3" };
    const details = [{ desc: BadRequestSchema, value: { fieldViolations: [{ field: "a", description: "é" }] } }];
    throw new ConnectError("no\nway: é%", Code.ResourceExhausted, metadata, details);
  },
  "error without a message": () => {
    throw new ConnectError("", Code.Aborted);
  },
  "error with a long message": () => {
    throw new ConnectError("word ".repeat(400), Code.OutOfRange);
  },
  "no message": () => ({ expireTime: { ...timestamp, seconds: 10n ** 15n } }),
};
