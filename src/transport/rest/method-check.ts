import type { FastifyInstance, FastifyRequest } from "fastify";
import { HttpError } from "../wire/http-error.ts";
import { type PathRouter, splitRequestTarget } from "./path-router.ts";

/** Rejects requests whose method no route of their path takes, before their bodies are read. */
export function checkMethods(fastify: FastifyInstance, router: PathRouter<unknown>): void {
  fastify.addHook("onRequest", (request, _reply, next) => {
    requireMethod(fastify, router, request);
    next();
  });
}

/** RFC 10008. Fastify supports it, although no route does, and would check its body first, with an error in another form. */
const QUERY = "QUERY";

/** Rejects a method that no route of a path takes: 405 and the allowed methods. REST and Connect check their own paths. */
function requireMethod(fastify: FastifyInstance, router: PathRouter<unknown>, request: FastifyRequest): void {
  const { method, raw } = request;
  if (method !== QUERY && !request.is404) return;
  const { path } = splitRequestTarget(raw.url ?? "");
  const found = router.find(method, path);
  const ofRest = found.kind === "wrong-method" ? found.allowed : [];
  const methods = fastify.supportedMethods.filter((name) => name !== QUERY);
  const allowed = [...ofRest, ...methods.filter((name) => fastify.hasRoute({ method: name, url: path }))];
  if (allowed.length > 0) throw new HttpError("METHOD_NOT_ALLOWED", { allow: allowed.join(", ") });
  if (method === QUERY) throw new HttpError("PATH_NOT_FOUND");
}
