/**
 * An IP address as 32-bit words: one for IPv4, four for IPv6. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is its IPv4 address, because
 * a socket that accepts both families reports IPv4 clients in that form.
 */
export type IpAddress = Uint32Array;

const DOT = 46;
const COLON = 58;
const GROUPS = 8;

/** The groups of the address that is being parsed: verification parses an address per call, and allocates nothing that is not returned. */
const groups = new Uint16Array(GROUPS);

/**
 * Parses an address: dotted decimal without leading zeros, or the text forms of RFC 4291 §2.2 in either case. Returns undefined for other
 * text, including addresses with a zone (RFC 4007 §11), a port or a prefix length.
 */
export function parseAddress(text: string): IpAddress | undefined {
  // The longest form is 45 characters: eight groups, of which the last two are an IPv4 address.
  if (text.length > 45) return undefined;
  if (!text.includes(":")) {
    const address = parseIpv4(text, 0);
    return address === -1 ? undefined : ofWord(address);
  }
  return parseIpv6(text) ? toWords() : undefined;
}

/** Returns the address from this place to the end of the text as a number; -1 if there is none. */
function parseIpv4(text: string, from: number): number {
  let [word, parts, digits, part] = [0, 1, 0, 0];
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || parts === 4) return -1;
      word = word * 256 + part;
      [part, digits] = [0, 0];
      parts++;
    } else {
      // inet_aton(3) takes a leading zero for octal: what one reader allows as 10.0.0.8, another one may take for something else.
      if (code < 48 || code > 57 || (digits > 0 && part === 0)) return -1;
      part = part * 10 + code - 48;
      digits++;
      if (part > 255) return -1;
    }
  }
  return parts === 4 && digits > 0 ? word * 256 + part : -1;
}

/** Parses into `groups` and returns whether it is an address. */
function parseIpv6(text: string): boolean {
  /** The number of groups so far, and how many of them are before "::". */
  let [count, gap] = [0, -1];
  let at = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return false;
    [gap, at] = [0, 2];
  }
  while (at < text.length) {
    if (count === GROUPS) return false;
    const start = at;
    let group = 0;
    for (; at < text.length && at - start < 5; at++) {
      const digit = hexDigit(text.charCodeAt(at));
      if (digit === -1) break;
      group = group * 16 + digit;
    }
    if (text.charCodeAt(at) === DOT) {
      const word = count > GROUPS - 2 ? -1 : parseIpv4(text, start);
      if (word === -1) return false;
      groups[count++] = word >>> 16;
      groups[count++] = word;
      break;
    }
    if (at === start || at - start > 4) return false;
    groups[count++] = group;
    if (at === text.length) break;
    if (text.charCodeAt(at++) !== COLON) return false;
    if (text.charCodeAt(at) === COLON) {
      if (gap !== -1) return false;
      gap = count;
      at++;
    } else if (at === text.length) return false;
  }
  if (gap === -1) return count === GROUPS;
  // "::" stands for at least one group.
  if (count === GROUPS) return false;
  groups.copyWithin(GROUPS - count + gap, gap, count);
  groups.fill(0, gap, GROUPS - count + gap);
  return true;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Returns the words of `groups`. Not by iteration or `of`, which take ten times as long. */
function toWords(): IpAddress {
  const [first, second, third, last] = [word(0), word(2), word(4), word(6)];
  if (first === 0 && second === 0 && third === 0xffff) return ofWord(last);
  const words = new Uint32Array(4);
  words[0] = first;
  words[1] = second;
  words[2] = third;
  words[3] = last;
  return words;
}

function word(at: number): number {
  return (((groups[at] ?? 0) << 16) | (groups[at + 1] ?? 0)) >>> 0;
}

function ofWord(value: number): IpAddress {
  const words = new Uint32Array(1);
  words[0] = value;
  return words;
}

/** Returns the canonical text of an address: dotted decimal, or RFC 5952 §4. */
export function formatAddress(address: IpAddress): string {
  const parts = [...address].flatMap((word) => [word >>> 16, word & 0xffff]);
  if (address.length === 1) return parts.flatMap((part) => [part >>> 8, part & 0xff]).join(".");
  const { start, length } = longestZeros(parts);
  const hex = parts.map((part) => part.toString(16));
  if (length < 2) return hex.join(":");
  return `${hex.slice(0, start).join(":")}::${hex.slice(start + length).join(":")}`;
}

/** Returns the first of the longest runs of zeros. */
function longestZeros(parts: readonly number[]): { start: number; length: number } {
  let [best, run] = [
    { start: 0, length: 0 },
    { start: 0, length: 0 },
  ];
  for (const [index, part] of parts.entries()) {
    run = part === 0 ? { start: run.start, length: run.length + 1 } : { start: index + 1, length: 0 };
    if (run.length > best.length) best = run;
  }
  return best;
}
