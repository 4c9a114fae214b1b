import { randomUUID } from "node:crypto";
import { cors as connectCors } from "@connectrpc/connect";
import cors from "@fastify/cors";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import { type Implementation, SERVICES } from "../api/implementations.ts";
import type { Guard } from "../auth/guard.ts";
import { clientErrorHandler } from "./client-error.ts";
import { registerConnect } from "./connect/register.ts";
import { type CheckReadiness, createHealth, registerHealth } from "./health.ts";
import { requireLoopbackName } from "./loopback-names.ts";
import type { Certificate } from "./port/entry.ts";
import { createPort } from "./port/port.ts";
import { errorHandler, notFoundHandler } from "./rest/error-response.ts";
import { registerRest } from "./rest/register.ts";
import { createRpc } from "./rpcs.ts";

export interface ServerOptions {
  readonly implementations: readonly Implementation[];
  readonly guard: Guard;
  readonly checkReadiness: CheckReadiness;
  readonly logger: FastifyBaseLogger;
  readonly certificate: Certificate | undefined;
  /** Origins of web pages whose scripts may call (CORS); empty: none. */
  readonly corsOrigins: readonly string[];
  /** Whether to refuse requests that call the server by a name other than those of its own machine. */
  readonly loopbackNamesOnly: boolean;
}

/** The one Fastify instance: HTTP/1.1 and HTTP/2 on one port; Connect, gRPC, gRPC-Web and REST from the same functions. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const { certificate, logger, guard, checkReadiness } = options;
  const port = createPort(certificate === undefined ? {} : { certificate });
  const fastify: FastifyInstance = Fastify({
    serverFactory: port.serverFactory,
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    frameworkErrors: errorHandler,
    // A request that comes while we close is answered like any other, not in a form of Fastify's own.
    return503OnClosing: false,
    clientErrorHandler: clientErrorHandler(logger),
  });
  const shutdown = new AbortController();
  fastify.addHook("preClose", async () => shutdown.abort(new Error("the server is stopping")));
  fastify.setErrorHandler(errorHandler);
  fastify.setNotFoundHandler(notFoundHandler);
  logRequests(fastify);
  if (options.loopbackNamesOnly) requireLoopbackName(fastify);
  await allowOrigins(fastify, options.corsOrigins);

  const health = createHealth(SERVICES, checkReadiness, shutdown.signal);
  const rpcs = options.implementations.map((implementation) => createRpc(implementation, guard));
  await registerConnect(fastify, [...rpcs, createRpc(health.check, guard)], [health.watch]);
  registerRest(fastify, rpcs);
  registerHealth(fastify, checkReadiness);
  return fastify;
}

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/** The caller's own identifier of the request, if it is a sober one. */
function requestId({ headers }: { headers: Record<string, unknown> }): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}

/** One line a request. The URL is not in it: whoever confuses a key_id with a secret would find the secret in our log. */
function logRequests(fastify: FastifyInstance): void {
  fastify.decorateRequest("facts");
  fastify.addHook("onRequest", async (request: FastifyRequest, reply: FastifyReply) => {
    request.facts = {};
    reply.header("x-request-id", request.id);
  });
  fastify.addHook("onResponse", async (request, reply) => {
    const { method, facts, log } = request;
    const line = { method, status: reply.statusCode, ...facts, duration_ms: Math.round(reply.elapsedTime * 10) / 10 };
    if (facts.rpc === undefined && reply.statusCode < 400) log.debug(line, "request");
    else log.info(line, "request");
  });
}

/** Seconds for which a browser may keep the answer to a preflight: as long as any browser does. */
const PREFLIGHT_MAX_AGE = 7200;

async function allowOrigins(fastify: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  await fastify.register(cors, {
    origin: [...origins],
    methods: [...connectCors.allowedMethods, "PATCH", "DELETE"],
    allowedHeaders: [...connectCors.allowedHeaders, "Authorization", "Cache-Control", "X-Request-Id"],
    exposedHeaders: [...connectCors.exposedHeaders, "ETag", "Retry-After", "WWW-Authenticate", "X-Request-Id"],
    maxAge: PREFLIGHT_MAX_AGE,
  });
}
