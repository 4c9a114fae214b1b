import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Rpc, StreamRpc } from "../../api/rpc.ts";
import type { RestCall } from "../wire/fastify-call.ts";
import { mediaTypePattern } from "../wire/headers.ts";
import { HttpError, methodNotAllowed } from "../wire/http-error.ts";
import { type Json, restHandler, sendJson } from "../wire/json-response.ts";
import { yieldIfLong } from "../wire/protobuf.ts";
import { NO_BODY, type ReadBody } from "../wire/request-body.ts";
import { type Events, openEvents, sendEvents } from "./event-stream.ts";
import { type BodyRule, readRestRules } from "./http-rule.ts";
import { PathRouter, splitRequestTarget } from "./path-router.ts";
import { requestDecoder } from "./request-decoder.ts";
import { encodeResponse } from "./response.ts";

/** The route of a path and HTTP method. */
interface Route {
  readonly rpc: Rpc | StreamRpc;
  readonly body: BodyRule;
  readonly decode: ReturnType<typeof requestDecoder>;
}

type Routes = ReturnType<typeof makeRoutes>;

/** Creates the routes of RPCs from their `google.api.http` annotations. Throws `Error` if one is invalid or two collide. */
export function makeRoutes(rpcs: readonly (Rpc | StreamRpc)[]) {
  const router = new PathRouter<Route>();
  /** Fastify matches the first segment, which is literal; the router does the rest. */
  const mounts = new Set<string>();
  for (const rpc of rpcs) {
    for (const rule of readRestRules(rpc.method)) {
      router.add(rule.httpMethod, rule.template, { rpc, body: rule.body, decode: requestDecoder(rpc, rule) });
      mounts.add(`/${rule.template.segments[0]}/*`);
    }
  }
  return { router, mounts };
}

/** Registers the routes. The instance must have no prefix, because annotations contain complete paths. */
export function registerRest(fastify: FastifyInstance, routes: Routes, readBody: ReadBody): void {
  // OPTIONS is handled by CORS.
  const method = fastify.supportedMethods.filter((name) => name !== "OPTIONS");
  const handler = serve(routes, readBody);
  for (const url of routes.mounts) fastify.route({ method, url, exposeHeadRoute: false, handler });
}

/** RFC 10008. Fastify supports it, although no route does, and would check its body first, with an error in another form. */
const QUERY = "QUERY";

/**
 * Rejects a method that no route of a path takes, before the body is read: 405 and the allowed methods. REST and Connect check those of
 * their own paths.
 */
export function checkMethods(fastify: FastifyInstance, { router }: Routes): void {
  fastify.addHook("onRequest", ({ method, raw, is404 }, _reply, next) => {
    if (method !== QUERY && !is404) return next();
    const { path } = splitRequestTarget(raw.url ?? "");
    const found = router.find(method, path);
    const ofRest = found.kind === "wrong-method" ? found.allowed : [];
    const methods = fastify.supportedMethods.filter((name) => name !== QUERY);
    const allowed = [...ofRest, ...methods.filter((name) => fastify.hasRoute({ method: name, url: path }))];
    if (allowed.length > 0) throw methodNotAllowed(allowed);
    if (method === QUERY) throw new HttpError("PATH_NOT_FOUND");
    next();
  });
}

function serve({ router }: Routes, readBody: ReadBody) {
  const answer = async (call: RestCall, request: FastifyRequest): Promise<Json | Events> => {
    const { path, query } = splitRequestTarget(request.raw.url ?? "");
    const { value: route, segments } = findRoute(router, request.method, path);
    const { rpc } = route;
    const admitted = await rpc.admit(call);
    const body = await readJsonBody(readBody, request.raw, route);
    // The caller may have been revoked while the body was in transit.
    const principal = body === NO_BODY ? admitted : await rpc.admit(call);
    const message = route.decode({ segments, query, body });
    await yieldIfLong(message);
    if ("stream" in rpc) return openEvents(rpc, message, principal, call);
    const response = await rpc.invoke(message, principal, call);
    return encodeResponse(rpc.method.output, response);
  };
  return restHandler(answer, (request, reply, response) =>
    typeof response === "string" || Buffer.isBuffer(response)
      ? sendJson(request, reply, response)
      : sendEvents(reply, response),
  );
}

function findRoute(router: PathRouter<Route>, method: string, path: string) {
  const found = router.find(method, path);
  if (found.kind === "found") return found;
  if (found.kind === "wrong-method") throw methodNotAllowed(found.allowed);
  if (found.nearest === undefined) throw new HttpError("PATH_NOT_FOUND");
  throw new HttpError("PATH_NOT_FOUND", {}, `no such path; did you mean ${found.nearest}?`);
}

const JSON_MEDIA_TYPE = mediaTypePattern("application/json");

/** Reads a request's body, which must be JSON. Rejects with an `HttpError`. */
async function readJsonBody(readBody: ReadBody, raw: IncomingMessage, { rpc, body }: Route): Promise<Uint8Array> {
  if (body.kind === "none") return readBody(raw, rpc.maxRequestBytes);
  const { "content-type": type, "content-encoding": encoding = "identity" } = raw.headers;
  // Even if the body is empty: a form on a foreign web page can send such a request without a preflight (CSRF).
  if (type !== undefined && !JSON_MEDIA_TYPE.test(type)) throw new HttpError("MEDIA_TYPE_NOT_SUPPORTED");
  if (encoding.toLowerCase() !== "identity") throw new HttpError("CONTENT_ENCODING_NOT_SUPPORTED");
  const bytes = await readBody(raw, rpc.maxRequestBytes);
  if (bytes.length > 0 && type === undefined) throw new HttpError("MEDIA_TYPE_NOT_SUPPORTED");
  return bytes;
}
