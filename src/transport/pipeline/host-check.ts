import type { FastifyInstance } from "fastify";
import { isAddressHost, isListedHost, isLoopbackHost } from "../../lib/host-names.ts";
import type { Headers } from "../wire/headers.ts";
import { HttpError, type HttpErrorReason } from "../wire/http-error.ts";

/** Which requests a server without authentication accepts. */
export type RequestPolicy = NonNullable<ReturnType<typeof requestPolicy>>;

type RequestPolicyConfig = Readonly<Record<"auth" | "allowedHosts" | "corsOrigins", readonly string[]>>;

/** Header fields that proxies add (RFC 7239, RFC 9110 §7.6.3, and those of nginx, Envoy and others). */
const PROXY_FIELDS = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/**
 * Returns the policy of the configuration, or null if every call needs a credential, which no foreign web page has. Without KEYHOLD_AUTH
 * the server relies on being reachable from its own machine only, so a proxy there would open it to everyone.
 */
export function requestPolicy({ auth, allowedHosts, corsOrigins }: RequestPolicyConfig) {
  if (auth.length > 0 && !auth.includes("none")) return null;
  return {
    /** In addition to the names of the loopback. */
    hosts: allowedHosts,
    /** Whether any IP address is accepted as host, and requests through a proxy. */
    isOpen: auth.length > 0,
    /** In addition to the server's own. */
    origins: corsOrigins,
  };
}

/** Returns why a request with these headers must be rejected, or undefined. */
export type CheckHost = (headers: Headers) => HttpErrorReason | undefined;

/**
 * Creates the check of requests for every transport; null accepts all. DNS rebinding: a web page whose host name is made to resolve to
 * the server calls it as its own origin, and the browser sends that name as Host. CSRF: any page may send a POST without a body, though
 * it does not see the response, and the browser sends its Origin.
 */
export function createHostCheck(policy: RequestPolicy | null): CheckHost {
  if (policy === null) return () => undefined;
  /** The last allowed host; most requests have the same. */
  let allowed: string | undefined;
  return (headers) => {
    const host = String(headers[":authority"] ?? headers.host ?? "");
    const { hosts, isOpen } = policy;
    const isAllowed =
      host === allowed || isLoopbackHost(host) || (isOpen && isAddressHost(host)) || isListedHost(host, hosts);
    if (!isAllowed) return "HOST_NOT_ALLOWED";
    allowed = host;
    if (!isOpen && PROXY_FIELDS.some((name) => headers[name] !== undefined)) return "PROXY_NOT_ALLOWED";
    const { origin } = headers;
    return origin === undefined || isAllowedOrigin(String(origin), host, policy) ? undefined : "ORIGIN_NOT_ALLOWED";
  };
}

/** RFC 6454 §7: `null`, an opaque origin, is foreign too. */
function isAllowedOrigin(origin: string, host: string, { origins }: RequestPolicy): boolean {
  if (origins.includes(origin)) return true;
  const page = URL.parse(origin);
  if (page === null) return false;
  if (isLoopbackHost(host)) return isLoopbackHost(page.host);
  return URL.parse(`${page.protocol}//${host}`)?.host === page.host;
}

/** Rejects requests by their host, origin and proxy, before their bodies are read. */
export function checkHosts(fastify: FastifyInstance, rejectionOf: CheckHost): void {
  fastify.addHook("onRequest", ({ headers, raw }, _reply, next) => {
    const reason = hasOneHost(headers, raw.httpVersion) ? rejectionOf(headers) : "HTTP_MALFORMED";
    if (reason !== undefined) throw new HttpError(reason);
    // Connect requires a host, which HTTP/1.0 may omit.
    if (raw.httpVersion === "1.0") raw.headers.host ??= "localhost";
    next();
  });
}

/**
 * Returns whether there is exactly one well-formed `Host` or `:authority` (RFC 9112 §3.2): a proxy may have interpreted another one.
 * HTTP/1.0 may omit it. What Node treats as HTTP/0.9 is a request line without a version.
 */
function hasOneHost(headers: Headers, httpVersion: string): boolean {
  const host = headers[":authority"] ?? headers.host;
  return host === undefined ? httpVersion === "1.0" : httpVersion !== "0.9" && isHost(String(host));
}

/** Characters that no host and port contain (RFC 3986 §3.2), though a URL may. Node joins two Host fields with a comma. */
const NOT_IN_HOST = /[\s,/?#@\\]/;

/** The last valid host; most requests have the same. */
let lastValid: string | undefined;

/** Returns whether this is a valid host with or without a port. */
export function isHost(host: string): boolean {
  if (host === lastValid) return true;
  if (NOT_IN_HOST.test(host) || !URL.canParse(`http://${host}`)) return false;
  lastValid = host;
  return true;
}
