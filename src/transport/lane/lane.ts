import type { IncomingHttpHeaders } from "node:http";
import type { FastifyBaseLogger } from "fastify";
import { isLoopbackName } from "../loopback-names.ts";
import type { Front } from "../port/front.ts";
import { requestLine } from "../request-line.ts";
import { LaneCall } from "./call.ts";
import type { Exchange } from "./exchange.ts";
import { Http1Exchange, MessageExchange } from "./http1.ts";
import { Http2Exchange } from "./http2.ts";
import type { Route } from "./route.ts";
import { serve } from "./serve.ts";
import type { Table, Tables } from "./tables.ts";

export interface LaneOptions {
  readonly logger: FastifyBaseLogger;
  /** Whether web pages of some origins may call: their requests are for the CORS of Fastify. */
  readonly hasOrigins: boolean;
  /** Whether to leave requests that call the server by a foreign name to what refuses them. */
  readonly loopbackNamesOnly: boolean;
}

/**
 * Serves the usual unary requests in front of Fastify, which costs more than all that such a request needs: POST, of a known path
 * and content type, not compressed. All others are passed on before a byte of their body is read. What it answers is, but for
 * the differences that its comparison test lists, what Fastify and Connect's handler answer.
 */
export function createLane(tables: Tables, options: LaneOptions): Front {
  // As the CORS of Fastify does it, for every request.
  const headers = options.hasOrigins ? ["vary", "Origin"] : [];
  const context = { logger: options.logger, writeLine: requestLine(options.logger), headers };
  const take = (route: Route | undefined, exchange: () => Exchange): boolean => {
    if (route === undefined) return false;
    serve(route, new LaneCall(exchange(), context));
    return true;
  };
  return {
    takeMessage(message) {
      const { method, target, headers } = message.head;
      const route = find(tables.http1, method, target, headers, options);
      return take(route, () => new MessageExchange(message));
    },
    takeRequest(request, response) {
      const route = find(tables.http1, request.method, request.url, request.headers, options);
      return take(route, () => new Http1Exchange(request, response));
    },
    takeStream(stream, headers) {
      const route = find(tables.http2, headers[":method"], headers[":path"], headers, options);
      return take(route, () => new Http2Exchange(stream, headers));
    },
  };
}

type RequestHeaders = Readonly<IncomingHttpHeaders & Record<string, string | string[] | undefined>>;

function find(
  table: Table,
  method: string | undefined,
  path: string | undefined,
  headers: RequestHeaders,
  options: LaneOptions,
): Route | undefined {
  if (method !== "POST" || path === undefined) return undefined;
  const route = table.get(path)?.get(headers["content-type"] ?? "");
  return route !== undefined && isUsual(headers, options) ? route : undefined;
}

function isUsual(headers: RequestHeaders, { hasOrigins, loopbackNamesOnly }: LaneOptions): boolean {
  if (headers["content-encoding"] !== undefined || headers.expect !== undefined) return false;
  if (headers["grpc-encoding"] !== undefined && headers["grpc-encoding"] !== "identity") return false;
  if (hasOrigins && headers.origin !== undefined) return false;
  return !loopbackNamesOnly || isLoopbackName(headers);
}
