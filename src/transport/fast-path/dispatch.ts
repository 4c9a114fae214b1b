import type { FastifyBaseLogger } from "fastify";
import { createAccessLogWriter } from "../access-log-format.ts";
import type { BodyBudget } from "../body-budget.ts";
import type { CallCounters } from "../call-metrics.ts";
import { type Headers, headerOf } from "../headers.ts";
import type { CheckHost } from "../host-check.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { RequestInterceptor } from "../listener/request-interceptor.ts";
import { isHost } from "../request-checks.ts";
import type { FastCall } from "./call.ts";
import { Http1Call } from "./http1/call.ts";
import { createHttp1Connections } from "./http1/connections.ts";
import { Http2Call } from "./http2.ts";
import type { FastRoute } from "./route.ts";
import type { RouteTable } from "./routes.ts";
import { TickBudget } from "./tick-budget.ts";

export interface FastPathOptions {
  readonly logger: FastifyBaseLogger;
  readonly counters: CallCounters;
  readonly limits: ListenerLimits;
  readonly budget: BodyBudget;
  /** What must be refused is left to the complete path. */
  readonly findRefusal: CheckHost;
}

/** A body that its Content-Length says is larger is left to the complete path. Bytes. */
const MAX_CONTENT_LENGTH = 2 ** 17;

/**
 * Serves the calls of a few RPCs ahead of Fastify and Connect, whose overhead per call is several times the work of a verification. It
 * accepts a request only in its most common form: a known path and content type, uncompressed, not from a web page. Everything else it
 * declines, unread. Its responses are those of the complete path, but for the differences that the comparison test lists.
 */
export function createFastPath(routes: RouteTable, options: FastPathOptions): RequestInterceptor {
  const { logger, counters, limits, budget, findRefusal } = options;
  const context = { logger, counters, budget, writeEntry: createAccessLogWriter(logger) };
  const tick = new TickBudget<FastCall>((call) => call.run());
  const start = (call: FastCall) => tick.enter(call);
  const find = (path: string, headers: Headers): FastRoute | undefined => {
    const type = headers["content-type"];
    const route = typeof type === "string" ? routes.get(path)?.get(type) : undefined;
    return route !== undefined && isUsual(route, headers) && findRefusal(headers) === undefined ? route : undefined;
  };
  return {
    http1: (node) =>
      createHttp1Connections({
        node,
        limits,
        start,
        find(target, headers) {
          const route = find(target, headers);
          return route?.protocol === "grpc" ? undefined : route;
        },
        accept: (route, ...request) => new Http1Call(route, context, ...request),
      }),
    takeStream(stream, headers) {
      const route = headers[":method"] === "POST" ? find(headers[":path"] ?? "", headers) : undefined;
      if (route === undefined) return false;
      new Http2Call(route, context, stream, headers, start);
      return true;
    },
  };
}

function isUsual({ deadline }: FastRoute, headers: Headers): boolean {
  if (headers["content-encoding"] !== undefined || headers.expect !== undefined) return false;
  if (headers.origin !== undefined) return false;
  if (!isHost(headerOf(headers, ":authority") ?? headerOf(headers, "host") ?? "")) return false;
  if (Number(headers["content-length"] ?? 0) > MAX_CONTENT_LENGTH) return false;
  const encoding = headers["grpc-encoding"];
  if (encoding !== undefined && encoding !== "identity") return false;
  const value = deadline && headerOf(headers, deadline.header);
  return value === undefined || deadline?.parse(value) !== undefined;
}
