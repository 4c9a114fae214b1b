import type { DescService } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { Authorization } from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { Authorize } from "../api/gateways/authorize.ts";
import type { OnDecision } from "../api/gateways/decision.ts";
import type { Introspect } from "../api/introspection.ts";
import type { Implementation } from "../api/row.ts";
import { SERVICES } from "../api/v2alpha1/rpcs.ts";
import type { Guard } from "../auth/guard.ts";
import type { ClientAddressByEnvoy, ClientAddressOf } from "../lib/client-address.ts";
import type { Tracing } from "../observability/tracing/tracing.ts";
import { verificationRpcs } from "./fast-path/codecs.ts";
import { type Check, createCheck, createExtAuthz, EXT_AUTHZ } from "./gateways/ext-authz.ts";
import { createForwardAuth, FORWARD_AUTH, type ForwardAuth } from "./gateways/forward-auth.ts";
import { createIntrospection, INTROSPECTION, type IntrospectionPipeline } from "./gateways/introspect.ts";
import { tracePipeline } from "./pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "./pipeline/concurrency-limiter.ts";
import { createRpc, traceRpc } from "./pipeline/rpc-pipeline.ts";
import { type CheckReadiness, type CountWorkers, createHealth, registerHealth } from "./services/health.ts";
import { registerOpenApi } from "./services/openapi.ts";
import { createReflection } from "./services/reflection.ts";
import { createTransport, type TransportOptions } from "./transport.ts";

export interface ServerOptions
  extends Omit<TransportOptions, "rpcs" | "streams" | "fastRpcs" | "introspection" | "forwardAuth" | "check"> {
  readonly implementations: readonly Implementation[];
  /** Token introspection; without it the path is unknown. */
  readonly introspect?: Introspect;
  /** The endpoints for gateways; without it they are unknown. */
  readonly gateways?: GatewayOptions | undefined;
  readonly checkReadiness: CheckReadiness;
  /** With workers: their number. */
  readonly workers?: CountWorkers;
  /** Bounds waiting calls. */
  readonly limiter: ConcurrencyLimiter;
  /** Traces calls; by default they are not traced. */
  readonly tracing?: Tracing | undefined;
}

/** The protocols in which gateways ask; one that is undefined is unknown. */
export interface GatewayOptions {
  readonly forwardAuth?: GatewayProtocol<ClientAddressOf> | undefined;
  readonly extAuthz?: GatewayProtocol<ClientAddressByEnvoy> | undefined;
}

/** What gateways ask in one protocol, and how they and their clients are known. */
export interface GatewayProtocol<AddressOf> {
  readonly authorize: Authorize;
  readonly guard: Guard;
  readonly clientAddressOf: AddressOf;
  readonly onDecision: OnDecision;
}

/** Creates the server of Keyhold's API: its RPCs, health, reflection and documentation. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const { guard, limiter, tracing } = options;
  const check = checkOf(options);
  const services = [...SERVICES, ...(check === undefined ? [] : [Authorization])];
  const { health, reflection, stopping, checkReadiness } = createLifecycle(services, options.checkReadiness);
  const rpcs = options.implementations.map((implementation) => {
    const rpc = createRpc(implementation, guard, implementation.isReserved === true ? limiter.reserve() : limiter);
    return tracing === undefined ? rpc : traceRpc(rpc, tracing);
  });
  const fastify = await createTransport({
    ...options,
    rpcs: [...rpcs, createRpc(health.check, guard, limiter.reserve())],
    streams: [health.watch, ...reflection],
    introspection: introspectionOf(options),
    forwardAuth: forwardAuthOf(options),
    check,
    fastRpcs: verificationRpcs(rpcs),
  });
  fastify.addHook("preClose", stopping);
  registerHealth(fastify, checkReadiness, options.workers);
  registerOpenApi(fastify);
  return fastify;
}

/** Creates the server of a port for gateways: their endpoints and health, and nothing else. */
export async function createGatewayServer(options: ServerOptions): Promise<FastifyInstance> {
  const { guard, limiter } = options;
  const check = checkOf(options);
  const services = check === undefined ? [] : [Authorization];
  const { health, stopping, checkReadiness } = createLifecycle(services, options.checkReadiness);
  const fastify = await createTransport({
    ...options,
    corsOrigins: [],
    rpcs: [createRpc(health.check, guard, limiter.reserve())],
    streams: [health.watch],
    forwardAuth: forwardAuthOf(options),
    check,
    fastRpcs: [],
  });
  fastify.addHook("preClose", stopping);
  registerHealth(fastify, checkReadiness, options.workers);
  return fastify;
}

/** Returns health and reflection of these services, which end when the server stops. */
function createLifecycle(services: readonly DescService[], isReady: CheckReadiness) {
  const shutdown = new AbortController();
  // A load balancer that still checks over an open connection gets "not ready".
  const checkReadiness = async () => (shutdown.signal.aborted ? { accepting: false } : isReady());
  return {
    health: createHealth(services, checkReadiness, shutdown.signal),
    reflection: createReflection([...services, Health], shutdown.signal),
    stopping: async () => shutdown.abort(new Error("the server is stopping")),
    checkReadiness,
  };
}

function introspectionOf({ introspect, guard, limiter, tracing }: ServerOptions): IntrospectionPipeline | undefined {
  if (introspect === undefined) return undefined;
  const pipeline = createIntrospection(introspect, guard, limiter);
  return tracing === undefined ? pipeline : tracePipeline(INTROSPECTION, pipeline, tracing);
}

function forwardAuthOf({ gateways, limiter, tracing }: ServerOptions): ForwardAuth | undefined {
  if (gateways?.forwardAuth === undefined) return undefined;
  const { authorize, guard, clientAddressOf, onDecision } = gateways.forwardAuth;
  const pipeline = createForwardAuth(authorize, guard, limiter);
  const traced = tracing === undefined ? pipeline : tracePipeline(FORWARD_AUTH, pipeline, tracing);
  return { pipeline: traced, clientAddressOf, onDecision };
}

function checkOf({ gateways, limiter, tracing }: ServerOptions): Check | undefined {
  if (gateways?.extAuthz === undefined) return undefined;
  const { authorize, guard, clientAddressOf, onDecision } = gateways.extAuthz;
  const pipeline = createExtAuthz(authorize, clientAddressOf, guard, limiter);
  return createCheck(tracing === undefined ? pipeline : tracePipeline(EXT_AUTHZ, pipeline, tracing), onDecision);
}
