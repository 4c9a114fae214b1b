import type { FastifyInstance, FastifyRequest } from "fastify";
import { isAddressHost, isListedHost, isLoopbackHost } from "../lib/host-names.ts";
import { HttpError, type HttpErrorReason } from "./errors/http-error.ts";
import type { Headers } from "./headers.ts";
import { type PathRouter, splitRequestTarget } from "./rest/path-router.ts";

/** Which requests a server accepts that serves callers without a credential. */
export interface RequestPolicy {
  /** Names, besides those of the loopback, by which it may be called. */
  readonly hosts: readonly string[];
  /** Whether it may be called by any IP address. */
  readonly addresses: boolean;
  /** Whether requests that came through a proxy are accepted. */
  readonly proxies: boolean;
  /** Origins of web pages that may call, besides those of its own pages. */
  readonly origins: readonly string[];
}

export interface RequestPolicyConfig {
  readonly auth: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}

/** Fields that proxies add (RFC 7239, RFC 9110 §7.6.3, and what nginx, Envoy and others do). */
const PROXY_FIELDS = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/**
 * Returns what the configuration asks for, or null where every call needs a credential, which no web page has. Without
 * KEYHOLD_AUTH the server relies on being reached from its own machine alone, so a proxy there would open it to everyone.
 */
export function requestPolicy({ auth, allowedHosts, corsOrigins }: RequestPolicyConfig): RequestPolicy | null {
  const isChosen = auth.length > 0;
  if (isChosen && !auth.includes("none")) return null;
  return { hosts: allowedHosts, addresses: isChosen, proxies: isChosen, origins: corsOrigins };
}

/** Returns why a request with these headers must be refused, or undefined. */
export type CheckHost = (headers: Headers) => HttpErrorReason | undefined;

/**
 * Makes the check of requests, for every transport; null accepts all. A web page whose host name is made to resolve to the server (DNS
 * rebinding) calls it as its own origin: the browser then sends that name as Host. Any page may send a POST without a body
 * (CSRF), though it sees no answer: the browser then sends its Origin.
 */
export function createHostCheck(policy: RequestPolicy | null): CheckHost {
  if (policy === null) return () => undefined;
  /** The last host that was allowed: most requests name the same. */
  let allowed: string | undefined;
  return (headers) => {
    const host = String(headers[":authority"] ?? headers.host ?? "");
    if (host !== allowed && !isAllowedHost(host, policy)) return "HOST_NOT_ALLOWED";
    allowed = host;
    if (!policy.proxies && PROXY_FIELDS.some((name) => headers[name] !== undefined)) return "PROXY_NOT_ALLOWED";
    const { origin } = headers;
    return origin === undefined || isAllowedOrigin(String(origin), host, policy) ? undefined : "ORIGIN_NOT_ALLOWED";
  };
}

function isAllowedHost(host: string, { hosts, addresses }: RequestPolicy): boolean {
  return isLoopbackHost(host) || (addresses && isAddressHost(host)) || isListedHost(host, hosts);
}

/** RFC 6454 §7: `null`, of a page whose origin is a secret, is foreign too. */
function isAllowedOrigin(origin: string, host: string, { origins }: RequestPolicy): boolean {
  if (origins.includes(origin)) return true;
  const page = URL.parse(origin);
  if (page === null) return false;
  if (isLoopbackHost(host)) return isLoopbackHost(page.host);
  return URL.parse(`${page.protocol}//${host}`)?.host === page.host;
}

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
