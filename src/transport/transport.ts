import { cors as connectCors } from "@connectrpc/connect";
import cors from "@fastify/cors";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { Rpc, StreamRpc } from "../api/rpc.ts";
import { rowOf } from "../api/v2alpha1/rpcs.ts";
import type { Guard } from "../auth/guard.ts";
import type { ServeApi } from "../console/session-api.ts";
import { registerConnect } from "./connect/register.ts";
import type { StreamingRpc } from "./connect/streams.ts";
import type { FastRpc } from "./fast-path/codecs.ts";
import { createFastPath } from "./fast-path/fast-path.ts";
import { type StreamVerify, streamVerifyHandler } from "./fast-path/stream-verify.ts";
import { type AuditTilesPipeline, registerAuditTiles } from "./gateways/audit-tiles.ts";
import { type Check, checkRpc } from "./gateways/ext-authz.ts";
import { type ForwardAuth, registerForwardAuth } from "./gateways/forward-auth.ts";
import { type IntrospectionPipeline, registerIntrospection } from "./gateways/introspect.ts";
import type { Certificate } from "./listener/acceptor.ts";
import { clientErrorHandler, rejectConnect } from "./listener/client-error.ts";
import { defaultLimits } from "./listener/limits.ts";
import { ListenerServer } from "./listener/server.ts";
import {
  type CallCounters,
  createAccessLogWriter,
  type LogVerifications,
  registerAccessLog,
} from "./pipeline/access-log.ts";
import { checkHosts, createHostCheck, type RequestPolicy } from "./pipeline/host-check.ts";
import { createOutageLog } from "./pipeline/outage-log.ts";
import { checkMethods, makeRoutes, registerRest } from "./rest/register.ts";
import { answerErrors, handleError } from "./wire/error-handler.ts";
import { requestIdOf } from "./wire/headers.ts";
import { type BodyBudget, bodyReader } from "./wire/request-body.ts";

export interface TransportOptions {
  /** RPCs with one request message, over Connect, gRPC and gRPC-Web, and over REST where they have `google.api.http` annotations. */
  readonly rpcs: readonly (Rpc | StreamRpc)[];
  readonly streams: readonly StreamingRpc[];
  /** `StreamVerify`; without it the RPC is unknown. */
  readonly streamVerify?: StreamVerify | undefined;
  readonly introspection?: IntrospectionPipeline | undefined;
  readonly auditTiles?: AuditTilesPipeline | undefined;
  /** The forward-auth endpoint; without it the path is unknown. */
  readonly forwardAuth?: ForwardAuth | undefined;
  /** Envoy's ext_authz; without it the RPC is unknown. */
  readonly check?: Check | undefined;
  /** Whether the fast path serves common requests of `fastRpcs` and gateways. Without it Fastify serves them with the same results. */
  readonly fastPath: boolean;
  readonly fastRpcs: readonly FastRpc[];
  /** Authorizes streams; an `Rpc` authorizes its own calls. */
  readonly guard: Guard;
  readonly logger: FastifyBaseLogger;
  /** Default: all. */
  readonly logVerifications?: LogVerifications;
  readonly counters: CallCounters;
  readonly certificate: Certificate | undefined;
  /** The console; without it its paths are unknown. */
  readonly console?: RegisterPage | undefined;
  /** The page for the owners of keys, likewise. It gets only the RPCs that a session of it may call. */
  readonly keyPage?: RegisterPage | undefined;
  /** Origins of web pages whose scripts may call (CORS); empty: none. */
  readonly corsOrigins: readonly string[];
  /** Which requests are accepted by Host, Origin and proxy; null: all, because each needs a credential. */
  readonly requestPolicy: RequestPolicy | null;
  /** Milliseconds for which idle connections may still send a request during shutdown; default 0. */
  readonly drainDelay?: number;
  /** Bounds the memory of incoming request bodies. */
  readonly bodyBudget: BodyBudget;
}

/** Registers a page with a session of its own, for which `serveApi` registers the RPCs. */
export type RegisterPage = (fastify: FastifyInstance, serveApi: ServeApi) => Promise<void>;

/** Creates the Fastify instance: HTTP/1.1 and HTTP/2 on one port; Connect, gRPC, gRPC-Web and REST from the same RPCs. */
export async function createTransport(options: TransportOptions): Promise<FastifyInstance> {
  const { certificate, logger, counters, forwardAuth, check } = options;
  const rpcs = check === undefined ? options.rpcs : [...options.rpcs, checkRpc(check)];
  const routes = makeRoutes(rpcs);
  const limits = { ...defaultLimits, drainDelay: options.drainDelay ?? 0 };
  const rejectionOf = createHostCheck(options.requestPolicy);
  const outages = createOutageLog(logger);
  const writeEntry = createAccessLogWriter(logger, options.logVerifications);
  const ofFastPath = { ...options, outages, writeEntry, limits, rejectionOf };
  const interceptor = options.fastPath ? createFastPath(ofFastPath) : undefined;
  const fastify = Fastify({
    serverFactory: (listener) => new ListenerServer({ limits, certificate, interceptor }, listener),
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger per request costs more than adding the request id to the few lines that need it.
    childLoggerFactory: (parent) => parent,
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
    frameworkErrors: handleError,
    // A request that arrives during shutdown is served, not rejected in Fastify's own form.
    return503OnClosing: false,
    clientErrorHandler: clientErrorHandler(logger),
  });
  fastify.decorate("outages", outages);
  fastify.server.on("connect", rejectConnect);
  answerErrors(fastify);
  registerAccessLog(fastify, counters, writeEntry);
  checkHosts(fastify, rejectionOf);
  if (forwardAuth !== undefined) registerForwardAuth(fastify, forwardAuth);
  checkMethods(fastify, routes);
  await allowOrigins(fastify, options.corsOrigins);
  const readBody = bodyReader(options.bodyBudget);
  const handlers = options.streamVerify === undefined ? [] : [streamVerifyHandler(options.streamVerify)];
  await registerConnect(fastify, rpcs, options.streams, options.guard, readBody, handlers);
  registerRest(fastify, routes, readBody);
  if (options.introspection !== undefined) registerIntrospection(fastify, options.introspection, readBody);
  if (options.auditTiles !== undefined) registerAuditTiles(fastify, options.auditTiles);
  const serve = (of: typeof rpcs, streams: typeof options.streams) => (scope: FastifyInstance) =>
    registerConnect(scope, of, streams, options.guard, readBody, []);
  await options.console?.(fastify, serve(rpcs, options.streams));
  const ofKeyPage = rpcs.filter(({ method }) => rowOf(method)?.keyPage !== undefined);
  await options.keyPage?.(fastify, serve(ofKeyPage, []));
  return fastify;
}

/** Seconds for which a browser may cache a preflight response: the maximum of all browsers. */
const PREFLIGHT_MAX_AGE = 7200;

/** Besides those of Connect's protocols: what REST and the JWKS use, and the context of a trace (W3C Trace Context and Baggage). */
const ALLOWED_HEADERS = [
  ...["Authorization", "Cache-Control", "If-None-Match", "Last-Event-ID", "X-Request-Id"],
  ...["Traceparent", "Tracestate", "Baggage"],
];

/** Allows scripts of web pages of these origins to call (CORS); none if empty. */
async function allowOrigins(fastify: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  await fastify.register(cors, {
    origin: [...origins],
    methods: [...connectCors.allowedMethods, "PATCH", "DELETE"],
    allowedHeaders: [...connectCors.allowedHeaders, ...ALLOWED_HEADERS],
    exposedHeaders: [...connectCors.exposedHeaders, "ETag", "Retry-After", "WWW-Authenticate", "X-Request-Id"],
    maxAge: PREFLIGHT_MAX_AGE,
  });
}
