import { isAddressHost, isListedHost, isLoopbackHost } from "../lib/host-names.ts";
import type { HttpErrorReason } from "./errors/http-error.ts";
import type { Headers } from "./headers.ts";

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
