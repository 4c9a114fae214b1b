import dns from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { invalidArgument } from "../../domain/errors.ts";
import { allowsAddress, compileCidrs, contains } from "../../lib/cidr.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { parseAddress } from "../../lib/ip-address.ts";

/** Where webhooks may be sent: https to public addresses, http and https to the allowed networks. */
export interface AddressPolicy {
  /** Canonical CIDR blocks that are allowed although they are not public. */
  readonly allowedCidrs: readonly string[];
  /** URL of an HTTP proxy for all requests, which resolves names and checks their addresses itself; null: none. */
  readonly proxy: string | null;
}

/** The IPv4 blocks that are not globally reachable (IANA IPv4 Special-Purpose Address Registry), multicast, and one exception. */
const SPECIAL_IPV4 = compileCidrs([
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"],
  ...["192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"],
  ...["224.0.0.0/4", "240.0.0.0/4"],
  // The metadata service of Azure, the only one with a public address.
  "168.63.129.16/32",
]);

/** Global unicast (RFC 4291 §2.4). Everything else in IPv6 is special, such as NAT64 and unique local addresses. */
const GLOBAL_IPV6 = compileCidrs(["2000::/3"]);

/** The blocks within it that are not: protocol assignments with Teredo, documentation, 6to4. */
const SPECIAL_IPV6 = compileCidrs(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]);

function isPublic(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined) return false;
  if (address.length === 2) return !contains(SPECIAL_IPV4, address);
  return contains(GLOBAL_IPV6, address) && !contains(SPECIAL_IPV6, address);
}

/** `protocol` is that of a URL. */
function isAllowed(address: string, protocol: string, { allowedCidrs }: AddressPolicy): boolean {
  return allowsAddress(allowedCidrs, address) || (protocol === "https:" && isPublic(address));
}

/**
 * Throws INVALID_ARGUMENT of the field if no request may ever go to this URL. Names are resolved only when a request is sent, by
 * `checkedLookup`.
 */
export function checkWebhookUrl(text: string, policy: AddressPolicy, field = "url"): void {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw invalidArgument(field, "must be a URL that begins with https://", "INVALID_FORMAT");
  if (url.username !== "" || url.password !== "")
    throw invalidArgument(field, "must not contain a user or password", "VALUE_NOT_ALLOWED");
  // URLs have addresses in canonical form: `0x7f.1` is 127.0.0.1 already.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isName = isIP(host) === 0;
  const known = isName ? loopbackOf(host) : [host];
  if (!known.every((address) => isAllowed(address, url.protocol, policy)))
    throw invalidArgument(field, `has an address that ${remedy(url.protocol)}`, "VALUE_NOT_ALLOWED");
  const mayResolve = policy.allowedCidrs.length > 0 && policy.proxy === null;
  if (url.protocol === "http:" && isName && !mayResolve)
    throw invalidArgument(
      field,
      policy.proxy === null
        ? "must begin with https://; http requires KEYHOLD_WEBHOOK_ALLOW_CIDRS"
        : "must begin with https:// or have an address instead of a name: names are resolved by KEYHOLD_WEBHOOK_PROXY",
      "VALUE_NOT_ALLOWED",
    );
}

/** Returns the addresses of a name that is always this machine (RFC 6761 §6.3), also with the dot of the root. */
function loopbackOf(name: string): readonly string[] {
  return isLoopbackHost(name.replace(/\.$/, "")) ? ["127.0.0.1"] : [];
}

function remedy(protocol: string): string {
  return `is not ${protocol === "https:" ? "public" : "allowed over http"}; see KEYHOLD_WEBHOOK_ALLOW_CIDRS`;
}

/** A name has an address to which no request may go. The message does not contain it, which would reveal names of internal networks. */
export class AddressNotAllowedError extends Error {}

/**
 * Returns a `lookup` for a connection, which fails unless every address of the name is allowed. The connection is made to these
 * addresses: a second query, which might have another answer (DNS rebinding), never happens.
 */
export function checkedLookup(protocol: string, policy: AddressPolicy, resolve = dns.lookup): LookupFunction {
  return (name, options, callback) =>
    resolve(name, { ...options, all: true }, (error, addresses) => {
      const isRejected = error === null && !addresses.every(({ address }) => isAllowed(address, protocol, policy));
      const problem = isRejected
        ? new AddressNotAllowedError(`the host has an address that ${remedy(protocol)}`)
        : error;
      callback(problem, problem === null ? addresses : []);
    });
}
