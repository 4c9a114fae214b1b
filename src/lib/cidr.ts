import { formatAddress, type IpAddress, parseAddress } from "./ip-address.ts";
import { memoize } from "./memoize.ts";

/** The result of parsing a CIDR block: its canonical text, or why the text is none. */
export type ParsedCidr = { readonly cidr: string } | { readonly problem: string };

const WORD_BITS = 32;
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
  const bits = address.length * WORD_BITS;
  /** Bits before those that count. */
  const skipped = bits === WORD_BITS && addressText.includes(":") ? MAPPED_BITS : 0;
  const prefix = slash === -1 ? bits : prefixOf(text.slice(slash + 1), skipped, bits);
  if (prefix === undefined) {
    const [min, max] = [skipped, skipped + bits];
    return { problem: `must end with a prefix length from ${min} to ${max}, such as /${max - 8}` };
  }
  const block = address.map((word, index) => (word & maskOf(prefix, index)) >>> 0);
  const cidr = `${formatAddress(block)}/${prefix}`;
  if (block.every((word, index) => word === address[index])) return { cidr };
  return { problem: `has bits after the prefix of ${prefix}; the block that contains it is ${cidr}` };
}

function problemOf(address: string): string {
  if (address.includes("%")) return "must not have a zone";
  if (/^[\d.]+$/.test(address) && /(?:^|\.)0\d/.test(address)) return "must not have leading zeros";
  return "must be a CIDR block of IPv4 or IPv6, such as 203.0.113.0/24 or 2001:db8::/32, or an address";
}

/** Returns the length of a prefix without the skipped bits; undefined if the text is none. */
function prefixOf(text: string, skipped: number, bits: number): number | undefined {
  const prefix = /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) - skipped : Number.NaN;
  return prefix >= 0 && prefix <= bits ? prefix : undefined;
}

/** Returns the mask of a word of an address. */
function maskOf(prefix: number, index: number): number {
  const length = Math.min(Math.max(prefix - index * WORD_BITS, 0), WORD_BITS);
  // A shift takes its count modulo 32.
  return length === 0 ? 0 : (-1 << (WORD_BITS - length)) >>> 0;
}

/** Returns whether canonical CIDR blocks together contain every address of IPv4, or every one of IPv6. */
export function coverEverything(cidrs: readonly string[]): boolean {
  const prefixes = (words: number) =>
    cidrs.flatMap((cidr) => {
      const [text = "", length] = cidr.split("/");
      const address = parseAddress(text);
      if (address?.length !== words) return [];
      return Array.from(address, (word) => word.toString(2).padStart(WORD_BITS, "0"))
        .join("")
        .slice(0, Number(length));
    });
  return [1, 4].some((words) => coverPrefix(prefixes(words), ""));
}

/** Returns whether blocks, as the bits of their prefixes, contain every address that begins with these bits. */
function coverPrefix(blocks: readonly string[], bits: string): boolean {
  const within = blocks.filter((block) => block.startsWith(bits));
  if (within.length === 0 || within.includes(bits)) return within.length > 0;
  return coverPrefix(within, `${bits}0`) && coverPrefix(within, `${bits}1`);
}

/** Blocks as words, each followed by its mask: one pair for a block of IPv4, four for one of IPv6. */
export interface CompiledCidrs {
  readonly ipv4: Uint32Array;
  readonly ipv6: Uint32Array;
}

/** Compiles canonical CIDR blocks. */
export function compileCidrs(cidrs: readonly string[]): CompiledCidrs {
  const ipv4: number[] = [];
  const ipv6: number[] = [];
  for (const cidr of cidrs) {
    const slash = cidr.indexOf("/");
    const address = parseAddress(cidr.slice(0, slash));
    if (slash === -1 || address === undefined) throw new Error("a CIDR block is not in its canonical form");
    const prefix = Number(cidr.slice(slash + 1));
    const table = address.length === 1 ? ipv4 : ipv6;
    for (let index = 0; index < address.length; index++) table.push(address[index] ?? 0, maskOf(prefix, index));
  }
  return { ipv4: Uint32Array.from(ipv4), ipv6: Uint32Array.from(ipv6) };
}

/**
 * Returns whether one of the blocks contains the address. An IPv4 address is in IPv4 blocks only, also if it was written as an IPv6
 * address: `::/0` is all of IPv6.
 */
export function contains({ ipv4, ipv6 }: CompiledCidrs, address: IpAddress): boolean {
  return address.length === 1 ? containsIpv4(ipv4, address[0] ?? 0) : containsIpv6(ipv6, address);
}

function containsIpv4(table: Uint32Array, address: number): boolean {
  for (let at = 0; at < table.length; at += 2) {
    if (((address ^ (table[at] ?? 0)) & (table[at + 1] ?? 0)) === 0) return true;
  }
  return false;
}

/** Blocks of one list often differ in their second word. */
function containsIpv6(table: Uint32Array, address: IpAddress): boolean {
  const [a, b, c, d] = [address[0] ?? 0, address[1] ?? 0, address[2] ?? 0, address[3] ?? 0];
  for (let at = 0; at < table.length; at += 8) {
    if (((b ^ (table[at + 2] ?? 0)) & (table[at + 3] ?? 0)) !== 0) continue;
    if (((a ^ (table[at] ?? 0)) & (table[at + 1] ?? 0)) !== 0) continue;
    if (((c ^ (table[at + 4] ?? 0)) & (table[at + 5] ?? 0)) !== 0) continue;
    if (((d ^ (table[at + 6] ?? 0)) & (table[at + 7] ?? 0)) === 0) return true;
  }
  return false;
}

const compiled = memoize(compileCidrs);

/**
 * Returns whether one of the canonical CIDR blocks contains the address. Text that is no address is in none. Blocks that are `Shared` are
 * compiled once.
 */
export function allowsAddress(cidrs: readonly string[], address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && contains(compiled(cidrs), parsed);
}
