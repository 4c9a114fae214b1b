import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { Authorization } from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { ReadTree } from "../api/audit-tiles.ts";
import type { Introspect } from "../api/introspection.ts";
import type { Implementation, StreamImplementation } from "../api/row.ts";
import type { Rpc } from "../api/rpc.ts";
import { SERVICES } from "../api/v2alpha1/rpcs.ts";
import type { ClientAddressByEnvoy, ClientAddressOf } from "../lib/client-address.ts";
import type { Tracing } from "../observability/tracing.ts";
import { toFastRpcs } from "./fast-path/codecs.ts";
import { streamedVerification } from "./fast-path/stream-verify.ts";
import type { StreamedVerification } from "./fast-path/verification-stream.ts";
import { createAuditTiles } from "./gateways/audit-tiles.ts";
import { createCheck } from "./gateways/ext-authz.ts";
import { createForwardAuth, type GatewayProtocol } from "./gateways/forward-auth.ts";
import { createIntrospection } from "./gateways/introspect.ts";
import { createRpc } from "./pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "./pipeline/concurrency-limiter.ts";
import { createStreamRpc } from "./pipeline/server-stream.ts";
import { type CheckReadiness, type CountWorkers, createHealth, registerHealth } from "./services/health.ts";
import { registerOpenApi } from "./services/openapi.ts";
import { createReflection } from "./services/reflection.ts";
import { createTransport, type TransportOptions } from "./transport.ts";

export interface ServerOptions
  extends Omit<
    TransportOptions,
    "rpcs" | "streams" | "streamVerify" | "fastRpcs" | "introspection" | "auditTiles" | "forwardAuth" | "check"
  > {
  readonly implementations: readonly Implementation[];
  readonly streams: readonly StreamImplementation[];
  /** Token introspection; without it the path is unknown. */
  readonly introspect?: Introspect;
  /** The tree of the audit log; without it the paths are unknown. */
  readonly readTree?: ReadTree;
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

/** The protocols in which gateways ask; an undefined protocol is not served. */
export interface GatewayOptions {
  readonly forwardAuth?: GatewayProtocol<ClientAddressOf> | undefined;
  readonly extAuthz?: GatewayProtocol<ClientAddressByEnvoy> | undefined;
}

/** Creates the server of Keyhold's API: its RPCs, health, reflection and documentation. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const { implementations, introspect, readTree, guard, limiter, tracing } = options;
  const rpcs = implementations.map((implementation) =>
    createRpc(implementation, guard, implementation.isReserved === true ? limiter.reserve() : limiter, tracing),
  );
  const introspection = introspect && createIntrospection(introspect, guard, limiter, tracing);
  const auditTiles = readTree && createAuditTiles(readTree, guard, limiter, tracing);
  const fastRpcs = toFastRpcs(rpcs);
  const verification = streamedVerification(implementations, fastRpcs, guard, limiter, tracing);
  const { streams } = options;
  const fastify = await createPort(options, SERVICES, {
    rpcs,
    streams,
    fastRpcs,
    introspection,
    auditTiles,
    verification,
  });
  registerOpenApi(fastify, options.console !== undefined);
  return fastify;
}

/** Creates the server of a port for gateways: their endpoints and health, and nothing else. */
export function createGatewayServer(options: ServerOptions): Promise<FastifyInstance> {
  return createPort({ ...options, corsOrigins: [], console: undefined, keyPage: undefined }, [], {
    rpcs: [],
    streams: [],
    fastRpcs: [],
  });
}

/** The API of a port. */
interface Api extends Pick<TransportOptions, "fastRpcs" | "introspection" | "auditTiles"> {
  readonly rpcs: readonly Rpc[];
  readonly streams: readonly StreamImplementation[];
  readonly verification?: StreamedVerification | undefined;
}

/** Creates the server of a port with an API, health and the endpoints for gateways. Without `services` there is no reflection. */
async function createPort(
  options: ServerOptions,
  services: readonly DescService[],
  { rpcs, streams, verification, ...api }: Api,
): Promise<FastifyInstance> {
  const { guard, limiter, tracing, gateways: { forwardAuth, extAuthz } = {} } = options;
  const check = extAuthz && createCheck(extAuthz, limiter, tracing);
  const served = check === undefined ? services : [...services, Authorization];
  const shutdown = new AbortController();
  // A load balancer that still checks over an open connection gets "not ready".
  const checkReadiness = async () => (shutdown.signal.aborted ? { accepting: false } : options.checkReadiness());
  const health = createHealth(served, checkReadiness, shutdown.signal);
  const reflection = services.length === 0 ? [] : createReflection([...served, Health], shutdown.signal);
  const fastify = await createTransport({
    ...options,
    rpcs: [
      ...rpcs,
      ...streams.map((stream) => createStreamRpc(stream, guard, limiter, shutdown.signal, tracing)),
      createRpc(health.check, guard, limiter.reserve()),
    ],
    streams: [health.watch, ...reflection],
    streamVerify: verification && { ...verification, stopping: shutdown.signal },
    ...api,
    forwardAuth: forwardAuth && createForwardAuth(forwardAuth, limiter, tracing),
    check,
  });
  fastify.addHook("preClose", async () => shutdown.abort(new ConnectError("the server is stopping", Code.Unavailable)));
  registerHealth(fastify, checkReadiness, options.workers);
  return fastify;
}
