import type { FastifyBaseLogger } from "fastify";
import type { CallCounters } from "../calls.ts";
import { isAmongLoopbackNames } from "../loopback-names.ts";
import type { Front } from "../port/front.ts";
import { requestLine } from "../request-line.ts";
import { LaneCall } from "./call.ts";
import type { Exchange } from "./exchange.ts";
import { Http1Exchange, MessageExchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { FindRoute, RequestHeaders, Route } from "./route.ts";
import { serve } from "./serve.ts";
import type { Tables } from "./tables.ts";
import { Turns } from "./turns.ts";

export interface LaneOptions {
  readonly logger: FastifyBaseLogger;
  readonly counters: CallCounters;
  /** Whether web pages of some origins may call: their requests are for the CORS of Fastify. */
  readonly hasOrigins: boolean;
  /** Whether to leave requests that call the server by a foreign name to what refuses them. */
  readonly loopbackNamesOnly: boolean;
}

/**
 * Serves the usual unary requests in front of Fastify, which costs more than all that such a request needs: those of a known
 * path, method and content type, not compressed. All others are passed on before a byte of their body is read. What it answers
 * is, but for the differences that its comparison test lists, what Fastify and Connect's handler answer.
 */
export function createLane(tables: Tables, options: LaneOptions): Front {
  // As the CORS of Fastify does it, for every request.
  const headers = options.hasOrigins ? ["vary", "Origin"] : [];
  const { logger, counters } = options;
  const context = { logger, counters, writeLine: requestLine(logger), headers };
  const turns = new Turns<{ route: Route; call: LaneCall }>(({ route, call }) => serve(route, call));
  const take = (find: FindRoute, { method = "", url = "", headers }: Head, exchange: () => Exchange): boolean => {
    const route = isUsual(headers, options) ? find(method, url, headers) : undefined;
    if (route === undefined) return false;
    turns.enter({ route, call: new LaneCall(exchange(), route, method, context) });
    return true;
  };
  return {
    takeMessage(message) {
      const { method, target, headers } = message.head;
      return take(tables.http1, { method, url: target, headers }, () => new MessageExchange(message));
    },
    takeRequest: (request, response) => take(tables.http1, request, () => new Http1Exchange(request, response)),
    takeStream(stream, headers) {
      const { ":method": method, ":path": url } = headers;
      return take(tables.http2, { method, url, headers }, () => new Http2Exchange(stream, headers));
    },
  };
}

/** A request without its body. */
interface Head {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: RequestHeaders;
}

function isUsual(headers: RequestHeaders, { hasOrigins, loopbackNamesOnly }: LaneOptions): boolean {
  if (headers["content-encoding"] !== undefined || headers.expect !== undefined) return false;
  if (headers["grpc-encoding"] !== undefined && headers["grpc-encoding"] !== "identity") return false;
  if (hasOrigins && headers.origin !== undefined) return false;
  return !loopbackNamesOnly || isAmongLoopbackNames(headers);
}
