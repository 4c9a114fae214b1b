import { type Check, EXT_AUTHZ } from "../gateways/ext-authz.ts";
import type { ForwardAuth } from "../gateways/forward-auth.ts";
import { isForwardAuth } from "../gateways/forward-auth-request.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { RequestInterceptor } from "../listener/request-interceptor.ts";
import { type CheckHost, isHost } from "../pipeline/host-check.ts";
import { type Headers, headerOf } from "../wire/headers.ts";
import type { BodyBudget } from "../wire/request-body.ts";
import { createTickBudget } from "../wire/tick-budget.ts";
import type { CallContext, FastCall, FastRoute } from "./call.ts";
import type { FastRpc } from "./codecs.ts";
import { extAuthzRoutes, forwardAuthRoute } from "./gateway-routes.ts";
import { createHttp1Connections } from "./http1.ts";
import type { Head } from "./http1-message.ts";
import { cancelCall, Http2Call } from "./http2.ts";
import { NodeHttp1Call } from "./node-http1.ts";
import { makeFastRoutes } from "./protocols.ts";

interface FastPathOptions extends Pick<CallContext, "logger" | "outages" | "counters" | "writeEntry"> {
  readonly fastRpcs: readonly FastRpc[];
  readonly limits: ListenerLimits;
  readonly bodyBudget: BodyBudget;
  /** Requests that it rejects are left to the fallback. */
  readonly rejectionOf: CheckHost;
  /** The forward-auth endpoint, served over HTTP/1.1, in which gateways ask. */
  readonly forwardAuth?: ForwardAuth | undefined;
  /** Envoy's ext_authz, served over gRPC. */
  readonly check?: Check | undefined;
}

/** Bytes. Larger bodies, by their Content-Length, are left to the fallback. */
const MAX_CONTENT_LENGTH = 2 ** 17;

/**
 * Serves the calls of a few RPCs, and those of gateways, ahead of Fastify and Connect, whose overhead per call is several times the work
 * of a verification. It accepts a request only in its most common form: with the path and content type of a route, uncompressed, not from a
 * web page; from a gateway, without a body. It declines everything else, unread, to the fallback: Fastify. Its responses are those of the
 * fallback, except for the differences that the comparison test lists.
 */
export function createFastPath(options: FastPathOptions): RequestInterceptor {
  const { fastRpcs, limits, bodyBudget: budget, rejectionOf, forwardAuth, check } = options;
  const { logger, outages, counters, writeEntry } = options;
  const routes = makeFastRoutes(fastRpcs, counters);
  if (check !== undefined) routes.set(`/${EXT_AUTHZ}`, extAuthzRoutes(check, counters));
  const start = createTickBudget<FastCall>((call) => call.run());
  const context = { logger, outages, counters, budget, start, writeEntry };
  const find = (path: string, headers: Headers): FastRoute | undefined => {
    const type = headers["content-type"];
    const route = typeof type === "string" ? routes.get(path)?.get(type) : undefined;
    return route !== undefined && isCommon(route, headers) && rejectionOf(headers) === undefined ? route : undefined;
  };
  const gatewayRoute = forwardAuth && forwardAuthRoute(forwardAuth, counters);
  const findHttp1 = ({ method, target, headers }: RequestHead): FastRoute | undefined => {
    if (gatewayRoute === undefined || !isForwardAuth(target))
      return method === "POST" ? find(target, headers) : undefined;
    // Neither the type of a body nor the Origin, which are the client's, matters to the endpoint.
    return isHost(headerOf(headers, "host") ?? "") && rejectionOf(headers) === undefined ? gatewayRoute : undefined;
  };
  return {
    http1: (node) => createHttp1Connections({ node, limits, context, find: findHttp1 }),
    takeRequest(request, response) {
      const { method = "", url: target = "", headers } = request;
      const route = headers["transfer-encoding"] === undefined ? findHttp1({ method, target, headers }) : undefined;
      if (route === undefined || route.protocol === "grpc") return false;
      if (Number(headers["content-length"] ?? 0) > route.maxBodyBytes) return false;
      new NodeHttp1Call(route, context, request, response);
      return true;
    },
    takeStream(stream, headers) {
      const route = headers[":method"] === "POST" ? find(headers[":path"] ?? "", headers) : undefined;
      if (route === undefined) return false;
      new Http2Call(route, context, headers, stream);
      return true;
    },
    closeStream: cancelCall,
  };
}

type RequestHead = Pick<Head, "method" | "target" | "headers">;

function isCommon({ deadline }: FastRoute, headers: Headers): boolean {
  if (headers["content-encoding"] !== undefined || headers.expect !== undefined) return false;
  if (headers.origin !== undefined) return false;
  if (!isHost(headerOf(headers, ":authority") ?? headerOf(headers, "host") ?? "")) return false;
  if (Number(headers["content-length"] ?? 0) > MAX_CONTENT_LENGTH) return false;
  const encoding = headers["grpc-encoding"];
  if (encoding !== undefined && encoding !== "identity") return false;
  const value = deadline && headerOf(headers, deadline.header);
  return value === undefined || deadline?.parse(value) !== undefined;
}
