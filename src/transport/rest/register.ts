import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AdmittedCall, Rpc } from "../../api/rpc.ts";
import { errorHandlerWith } from "./error-response.ts";
import type { PathRouter } from "./path-router.ts";
import type { PathTemplate } from "./path-template.ts";
import { Refusal } from "./refusal.ts";
import { readJsonBody } from "./request-body.ts";
import { sendJson } from "./response.ts";
import { RestCall } from "./rest-call.ts";
import type { Route, Routes } from "./routes.ts";
import { splitTarget } from "./target.ts";

/**
 * Serves RPCs as REST: a request is decoded, given to `Rpc.invoke` and its answer encoded, with no other protocol between. An RPC
 * without an annotation has no REST path.
 *
 * The instance must have no prefix: annotations hold whole paths.
 */
export function registerRest(fastify: FastifyInstance, { router, templates, registry }: Routes): void {
  const mounts = new Set(templates.map(({ template }) => mountOf(template)));
  const httpMethods = new Set(templates.map(({ httpMethod }) => httpMethod).filter((method) => method !== "*"));
  for (const method of httpMethods) {
    if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method, { hasBody: true });
  }
  // CORS answers OPTIONS, unless a binding is for it.
  const methods = fastify.supportedMethods.filter((method) => method !== "OPTIONS" || httpMethods.has(method));
  fastify.register(async (instance) => {
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, done) => done(null));
    instance.setErrorHandler(errorHandlerWith(registry));
    const handler = serve(router);
    for (const url of mounts) instance.route({ method: methods, url, exposeHeadRoute: false, handler });
  });
}

/** Where Fastify hands over to the router: all below the first segment, where that is a plain word and not the only one. */
function mountOf({ segments: [first, second] }: PathTemplate): string {
  const isPrefix = first?.kind === "literal" && second !== undefined && /^[\w.-]+$/.test(first.text);
  return isPrefix ? `/${first.text}/*` : "/*";
}

function serve(router: PathRouter<Route>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const call = new RestCall(request, reply);
    const { path, query } = splitTarget(request.raw.url ?? "");
    const { route, segments } = findRoute(router, request.method, path);
    const admission = await admit(route.rpc, call, request);
    const body = await readJsonBody(request.raw, route.body, route.rpc.maxRequestBytes);
    const response = await route.rpc.invoke(route.decode({ segments, query, body }), admission);
    return sendJson(request, reply, route.encode(response));
  };
}

/** The body of a request that is refused still flows, and is dropped: the connection is to take the next one. */
async function admit(rpc: Rpc, call: RestCall, { raw }: FastifyRequest): Promise<AdmittedCall> {
  try {
    return await rpc.admit(call);
  } catch (error) {
    raw.resume();
    throw error;
  }
}

function findRoute(router: PathRouter<Route>, method: string, path: string) {
  const found = router.find(method, path);
  switch (found.kind) {
    case "found":
      return { route: found.value, segments: found.segments };
    case "wrong-method":
      throw new Refusal("METHOD_NOT_ALLOWED", { allow: found.allowed.join(", ") });
    case "unknown":
      throw new Refusal("PATH_NOT_FOUND");
  }
}
