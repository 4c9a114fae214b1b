import { formatAddress, type IpAddress, parseAddress } from "./ip-address.ts";
import { memoizeByIdentity } from "./memoize.ts";

/** The result of parsing a CIDR block: its canonical text, or why the text is none. */
export type ParsedCidr = { readonly cidr: string } | { readonly problem: string };

const GROUP_BITS = 16;
const ALL_BITS = 0xffff;
const IPV4_BITS = 32;
/** Length of the IPv4-mapped prefix ::ffff:0:0/96. */
const MAPPED_BITS = 96;

/**
 * Parses a CIDR block (RFC 4632 §3.1, RFC 4291 §2.3) and returns its canonical text, such as `203.0.113.0/24`. An address without a prefix
 * length is the block of that address. A block of IPv4-mapped addresses is the IPv4 block.
 */
export function parseCidr(text: string): ParsedCidr {
  const slash = text.indexOf("/");
  const addressText = slash === -1 ? text : text.slice(0, slash);
  const address = parseAddress(addressText);
  if (address === undefined) return { problem: problemOf(addressText) };
  const bits = address.length * GROUP_BITS;
  /** Bits before those that count. */
  const skipped = bits === IPV4_BITS && addressText.includes(":") ? MAPPED_BITS : 0;
  const prefix = slash === -1 ? bits : prefixOf(text.slice(slash + 1), skipped, bits);
  if (prefix === undefined) {
    const [min, max] = [skipped, skipped + bits];
    return { problem: `must end with a prefix length from ${min} to ${max}, such as /${max - 8}` };
  }
  const block = address.map((group, index) => group & maskOf(prefix, index));
  const cidr = `${formatAddress(block)}/${prefix}`;
  if (block.every((group, index) => group === address[index])) return { cidr };
  return { problem: `has host bits set to the right of the prefix /${prefix}; use the containing block ${cidr}` };
}

/** Returns the block with this many bits, by family, that contains an address; null if the text is no address. */
export function blockOf(text: string, ipv4Bits: number, ipv6Bits: number): string | null {
  const address = parseAddress(text);
  if (address === undefined) return null;
  const prefix = address.length * GROUP_BITS === IPV4_BITS ? ipv4Bits : ipv6Bits;
  return `${formatAddress(address.map((group, index) => group & maskOf(prefix, index)))}/${prefix}`;
}

function problemOf(address: string): string {
  if (address.includes("%")) return "must not have an IPv6 zone identifier";
  if (/^[\d.]+$/.test(address) && /(?:^|\.)0\d/.test(address)) return "must not have leading zeros";
  return "must be an IPv4 or IPv6 address, or a CIDR block such as 203.0.113.0/24 or 2001:db8::/32";
}

/** Returns the length of a prefix without the skipped bits; undefined if the text is none. */
function prefixOf(text: string, skipped: number, bits: number): number | undefined {
  const prefix = /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) - skipped : Number.NaN;
  return prefix >= 0 && prefix <= bits ? prefix : undefined;
}

function maskOf(prefix: number, index: number): number {
  const length = Math.min(Math.max(prefix - index * GROUP_BITS, 0), GROUP_BITS);
  return ALL_BITS & (ALL_BITS << (GROUP_BITS - length));
}

/** Returns whether canonical CIDR blocks together contain every address of IPv4, or every one of IPv6. */
export function coverEverything(cidrs: readonly string[]): boolean {
  const prefixes = (groups: number) =>
    cidrs.flatMap((cidr) => {
      const [text = "", length] = cidr.split("/");
      const address = parseAddress(text);
      if (address?.length !== groups) return [];
      const bits = address.map((group) => group.toString(2).padStart(GROUP_BITS, "0")).join("");
      return bits.slice(0, Number(length));
    });
  return [2, 8].some((groups) => coverPrefix(prefixes(groups), ""));
}

/** Returns whether blocks, as the bits of their prefixes, contain every address that begins with these bits. */
function coverPrefix(blocks: readonly string[], bits: string): boolean {
  const within = blocks.filter((block) => block.startsWith(bits));
  if (within.length === 0 || within.includes(bits)) return within.length > 0;
  return coverPrefix(within, `${bits}0`) && coverPrefix(within, `${bits}1`);
}

/** Returns the groups of the first address of each block, and the mask of each group. */
export function compileCidrs(cidrs: readonly string[]) {
  return cidrs.map((cidr) => {
    const [text = "", prefix] = cidr.split("/");
    const groups = parseAddress(text);
    if (groups === undefined || prefix === undefined) throw new Error("a CIDR block is not in its canonical form");
    return { groups, masks: groups.map((_, index) => maskOf(Number(prefix), index)) };
  });
}

/**
 * Returns whether one of the blocks contains the address. An IPv4 address is in IPv4 blocks only, also if it was written as an IPv6
 * address: `::/0` is all of IPv6.
 */
export function contains(blocks: ReturnType<typeof compileCidrs>, address: IpAddress): boolean {
  return blocks.some(
    ({ groups, masks }) =>
      groups.length === address.length &&
      groups.every((group, index) => ((group ^ (address[index] ?? 0)) & (masks[index] ?? 0)) === 0),
  );
}

/** By the list of a key or of the configuration, which is cached and used many times. */
const compiled = memoizeByIdentity(compileCidrs);

/** Returns whether one of the canonical CIDR blocks contains the address. Text that is no address is in none. The list must not change. */
export function allowsAddress(cidrs: readonly string[], address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && contains(compiled(cidrs), parsed);
}
