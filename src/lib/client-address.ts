import { compileCidrs, contains, coverEverything, parseCidr } from "./cidr.ts";
import { formatAddress, parseAddress } from "./ip-address.ts";

/**
 * Returns the address of the client of a request, by the address of the peer and the header `X-Forwarded-For` (several are joined by
 * commas). Empty if it is not known.
 */
export type ClientAddressOf = (peer: string, forwardedFor: string | undefined) => string;

/** The blocks of a list in their canonical form, or what is wrong with the list. */
export type ParsedNetworks = { readonly cidrs: readonly string[] } | { readonly problem: string };

/** Parses blocks of peers that a setting trusts. They must not contain all addresses together: the address would be no condition any more. */
export function parseNetworks(texts: readonly string[]): ParsedNetworks {
  const cidrs: string[] = [];
  for (const text of texts) {
    const parsed = parseCidr(text);
    if ("problem" in parsed) return { problem: `has ${JSON.stringify(text)}, which ${parsed.problem}` };
    cidrs.push(parsed.cidr);
  }
  return coverEverything(cidrs) ? { problem: "must not contain all addresses of IPv4 or IPv6" } : { cidrs };
}

/**
 * Returns how a server behind these proxies, canonical CIDR blocks, finds the address of a client. The header counts only from a trusted
 * proxy, and each proxy appends the address of its own peer: the client is the right-most address that is not a trusted proxy. Whatever
 * is left of it, anyone may have written.
 *
 * If that place has no address, such as `unknown`, the client is not known: to take the proxy's address instead would give the rights of
 * the proxy to everyone behind it. If all addresses are trusted, the client is the first.
 */
export function clientAddressBehind(trustedProxies: readonly string[]): ClientAddressOf {
  if (trustedProxies.length === 0) return withoutZone;
  const proxies = compileCidrs(trustedProxies);
  return (peer, forwardedFor) => {
    let address = parseAddress(withoutZone(peer));
    let end = forwardedFor?.length ?? 0;
    // From the right, as far as the addresses are trusted: clients may send many on the left.
    while (address !== undefined && forwardedFor !== undefined && end >= 0 && contains(proxies, address)) {
      const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(",", end - 1);
      address = parseAddress(withoutPort(forwardedFor.slice(comma + 1, end).trim()));
      end = comma;
    }
    return address === undefined ? "" : formatAddress(address);
  };
}

/**
 * Returns how a server that only gateways call finds the address of a gateway's client: by the header, and only from a trusted proxy. The
 * peer is never the client, so without either the client is not known.
 */
export function clientAddressFrom(gateways: readonly string[]): ClientAddressOf {
  const trusted = compileCidrs(gateways);
  const clientAddressOf = clientAddressBehind(gateways);
  return (peer, forwardedFor) => {
    const gateway = forwardedFor === undefined ? undefined : parseAddress(withoutZone(peer));
    return gateway !== undefined && contains(trusted, gateway) ? clientAddressOf(peer, forwardedFor) : "";
  };
}

export type ClientAddressByEnvoy = ReturnType<typeof clientAddressByEnvoy>;

/** The values of `x-envoy-external-address`, which Envoy sets for clients outside of its network, and of all `x-forwarded-for`. */
type EnvoyAddresses = Readonly<Record<"external" | "forwardedFor", string | undefined>>;

/**
 * Returns how the address of the client of an Envoy is found; empty if it is not known. Its peer is the client, unless it is a trusted proxy.
 * Then the headers count, and if both are there they must agree: Envoy does not remove an `x-envoy-external-address` that a client in its own
 * network sends.
 */
export function clientAddressByEnvoy(trustedProxies: readonly string[]) {
  const trusted = compileCidrs(trustedProxies);
  const clientAddressOf = clientAddressBehind(trustedProxies);
  return (peer: string, { external, forwardedFor }: EnvoyAddresses): string => {
    const address = parseAddress(withoutZone(peer));
    if (address === undefined) return "";
    if (!contains(trusted, address)) return formatAddress(address);
    const forwarded = forwardedFor === undefined ? undefined : clientAddressOf(peer, forwardedFor);
    if (external === undefined) return forwarded ?? "";
    const named = parseAddress(external.trim());
    const client = named === undefined ? "" : formatAddress(named);
    return forwarded === undefined || forwarded === client ? client : "";
  };
}

/** The address of a peer in the local network has the name of the interface (RFC 4007 §11), which is no part of it. */
function withoutZone(peer: string): string {
  const zone = peer.indexOf("%");
  return zone === -1 ? peer : peer.slice(0, zone);
}

/** Some proxies append the port of the client: `203.0.113.7:4711`, `[2001:db8::7]:4711`. */
function withoutPort(text: string): string {
  const [, ipv6, ipv4] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d{1,5})?$/i.exec(text) ?? [];
  return ipv6?.includes(":") ? ipv6 : (ipv4 ?? text);
}
