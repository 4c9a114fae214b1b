import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { Health } from "../../gen/health/v1/health_pb.js";
import { type Implementation, SERVICES } from "../api/implementations.ts";
import type { Guard } from "../auth/guard.ts";
import { type CallCounters, uncounted } from "./calls.ts";
import { clientErrorHandler } from "./client-error.ts";
import { registerConnect } from "./connect/register.ts";
import { allowOrigins } from "./cors.ts";
import { type CheckReadiness, type CountWorkers, createHealth, registerHealth } from "./health.ts";
import { createLane } from "./lane/lane.ts";
import { makeTables, type Tables } from "./lane/tables.ts";
import { requireLoopbackNames } from "./loopback-names.ts";
import { registerOpenApi } from "./openapi/register.ts";
import type { Certificate } from "./port/entry.ts";
import { defaultLimits } from "./port/limits.ts";
import { createPort } from "./port/port.ts";
import { createReflection } from "./reflection/service.ts";
import { requestIdOf } from "./request-id.ts";
import { logRequests } from "./request-log.ts";
import { errorHandler, notFoundHandler } from "./rest/error-response.ts";
import { registerRest } from "./rest/register.ts";
import { makeRoutes } from "./rest/routes.ts";
import { createRpc } from "./rpcs.ts";
import { type CallTracer, traced } from "./traced-rpc.ts";
import { UnderWay } from "./under-way.ts";

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
  /** Of a server that is one of several processes on a port: how many of them there are. */
  readonly workers?: CountWorkers;
  /** How long idle connections may still bring a request when the server closes, in milliseconds; by default not at all. */
  readonly lingerTimeout?: number;
  /** Whether the lane takes the usual requests; by default it does. Without it Fastify serves all, to the same effect. */
  readonly lane?: boolean;
  /** What bounds the calls that wait; by default as much as is good for one process. */
  readonly underWay?: UnderWay;
  /** What counts the calls; by default nobody does. */
  readonly counters?: CallCounters;
  /** What traces the calls; by default nobody does. */
  readonly tracer?: CallTracer;
}

/** The one Fastify instance: HTTP/1.1 and HTTP/2 on one port; Connect, gRPC, gRPC-Web and REST from the same functions. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const { guard, underWay = new UnderWay(), counters = uncounted } = options;
  const shutdown = new AbortController();
  // A load balancer that still asks, over a connection it has, is told to go elsewhere.
  const checkReadiness = async () => (shutdown.signal.aborted ? { accepting: false } : options.checkReadiness());
  const health = createHealth(SERVICES, checkReadiness, shutdown.signal);
  const reflection = createReflection([...SERVICES, Health], shutdown.signal);
  const rpcs = options.implementations.map((implementation) => {
    const rpc = createRpc(implementation, guard, underWay);
    return options.tracer === undefined ? rpc : traced(rpc, options.tracer);
  });
  // Health answers throughout: it waits for none of what the others wait for.
  const all = [...rpcs, createRpc(health.check, guard, new UnderWay())];
  const rest = makeRoutes(rpcs);
  const fastify = createFastify(options, makeTables(all, rest, counters), counters);
  fastify.addHook("preClose", async () => shutdown.abort(new Error("the server is stopping")));
  fastify.setErrorHandler(errorHandler);
  fastify.setNotFoundHandler(notFoundHandler);
  logRequests(fastify, counters);
  if (options.loopbackNamesOnly) requireLoopbackNames(fastify, options.corsOrigins);
  await allowOrigins(fastify, options.corsOrigins);
  await registerConnect(fastify, all, [health.watch, ...reflection], guard);
  registerRest(fastify, rest);
  registerHealth(fastify, checkReadiness, options.workers);
  registerOpenApi(fastify);
  return fastify;
}

function createFastify(options: ServerOptions, tables: Tables, counters: CallCounters): FastifyInstance {
  const { certificate, logger, corsOrigins, loopbackNamesOnly, lane = true, lingerTimeout = 0 } = options;
  const port = createPort({
    limits: { ...defaultLimits, lingerTimeout },
    ...(certificate && { certificate }),
    ...(lane && {
      front: createLane(tables, { logger, counters, hasOrigins: corsOrigins.length > 0, loopbackNamesOnly }),
    }),
  });
  return Fastify({
    serverFactory: port.serverFactory,
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
    frameworkErrors: errorHandler,
    // A request that comes while we close is answered like any other, not in a form of Fastify's own.
    return503OnClosing: false,
    clientErrorHandler: clientErrorHandler(logger),
  });
}
