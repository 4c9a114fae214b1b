import { isIP } from "node:net";

/**
 * An IP address as 16-bit groups: two for IPv4, eight for IPv6. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is its IPv4 address,
 * because a socket that accepts both families reports IPv4 clients in that form.
 */
export type IpAddress = readonly number[];

const IPV4_GROUPS = 2;
const IPV6_GROUPS = 8;

/**
 * Parses an address: dotted decimal without leading zeros, or the text forms of RFC 4291 §2.2 in either case. Returns undefined for other
 * text, including addresses with a zone (RFC 4007 §11), a port or a prefix length.
 */
export function parseAddress(text: string): IpAddress | undefined {
  const family = isIP(text);
  if (family === 4) return parseIpv4(text);
  return family === 6 && !text.includes("%") ? parseIpv6(text) : undefined;
}

function parseIpv4(text: string): number[] {
  const [a = "", b = "", c = "", d = ""] = text.split(".");
  return [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)];
}

function parseIpv6(text: string): IpAddress {
  const groups: number[] = [];
  /** The number of groups before "::", which leaves at least one part empty. */
  let gap = 0;
  for (const part of text.split(":")) {
    if (part === "") gap = groups.length;
    else if (part.includes(".")) groups.push(...parseIpv4(part));
    else groups.push(Number.parseInt(part, 16));
  }
  while (groups.length < IPV6_GROUPS) groups.splice(gap, 0, 0);
  return isMapped(groups) ? groups.slice(-IPV4_GROUPS) : groups;
}

/** Returns whether the address is in ::ffff:0:0/96. */
function isMapped(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.findIndex((group) => group !== 0) === 5;
}

/** Returns the canonical text of an address: dotted decimal, or RFC 5952 §4, as URLs have it (WHATWG URL, host serializer). */
export function formatAddress(address: IpAddress): string {
  if (address.length === IPV4_GROUPS) return address.flatMap((group) => [group >> 8, group & 0xff]).join(".");
  const groups = address.map((group) => group.toString(16)).join(":");
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
}
