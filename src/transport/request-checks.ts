import type { FastifyInstance, FastifyRequest } from "fastify";
import { HttpError } from "./errors/http-error.ts";
import type { CheckHost } from "./host-check.ts";
import type { PathRouter } from "./rest/path-router.ts";
import { splitRequestTarget } from "./rest/request-target.ts";

/** Refuses, before their bodies are read, requests that no route may serve. */
export function checkRequests(fastify: FastifyInstance, router: PathRouter<unknown>, findRefusal: CheckHost): void {
  fastify.addHook("onRequest", (request, _reply, next) => {
    requireOneHost(request);
    requireMethod(fastify, router, request);
    const reason = findRefusal(request.headers);
    if (reason !== undefined) throw new HttpError(reason);
    if (request.raw.httpVersion === "1.0") request.raw.headers.host ??= DEFAULT_HOST;
    next();
  });
}

/**
 * Refuses a request without exactly one well-formed `Host` or `:authority` (RFC 9112 §3.2): whoever stands in front may have
 * understood another one. HTTP/1.0 may do without. What Node takes for HTTP/0.9 is a line that names no version.
 */
function requireOneHost({ headers, raw }: FastifyRequest): void {
  const host = headers[":authority"] ?? headers.host;
  const isGood = host === undefined ? raw.httpVersion === "1.0" : raw.httpVersion !== "0.9" && isHost(String(host));
  if (!isGood) throw new HttpError("HTTP_MALFORMED");
}

/** For requests in HTTP/1.0 that name none: Connect cannot do without. */
const DEFAULT_HOST = "localhost";

/** What no host and port contain (RFC 3986 §3.2), though a URL may. Two Host fields are joined by a comma. */
const NOT_IN_HOST = /[\s,/?#@\\]/;

/** The last host that was well-formed: most requests name the same. */
let known: string | undefined;

/** Whether this is a host with or without a port, and one that URLs may have. */
export function isHost(host: string): boolean {
  if (host === known) return true;
  if (NOT_IN_HOST.test(host) || !URL.canParse(`http://${host}`)) return false;
  known = host;
  return true;
}

/** RFC 10008. Fastify knows it, though no route is for it, and would judge its body first, in a form of its own. */
const QUERY = "QUERY";

/** Refuses with 405, and the methods that there are, what the path exists for but the method does not. REST and Connect refuse the others. */
function requireMethod(
  fastify: FastifyInstance,
  router: PathRouter<unknown>,
  { method, is404, raw }: FastifyRequest,
): void {
  if (method !== QUERY && !is404) return;
  const { path } = splitRequestTarget(raw.url ?? "");
  const found = router.find(method, path);
  const ofRest = found.kind === "wrong-method" ? found.allowed : [];
  const methods = fastify.supportedMethods.filter((one) => one !== QUERY);
  const allowed = [...ofRest, ...methods.filter((one) => fastify.hasRoute({ method: one, url: path }))];
  if (allowed.length > 0) throw new HttpError("METHOD_NOT_ALLOWED", { allow: allowed.join(", ") });
  if (method === QUERY) throw new HttpError("PATH_NOT_FOUND");
}
