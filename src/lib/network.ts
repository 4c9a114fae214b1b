/** Groups of 16 bits in the part of an IPv6 address that names a network: one customer usually has a whole /64 (RFC 6177). */
const NETWORK_GROUPS = 4;

/**
 * Returns what one client cannot change at will of its IP address: an IPv4 address, also one that is mapped into IPv6, or the first 64 bits
 * of an IPv6 address.
 */
export function networkOf(address: string): string {
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  return [...first, ...Array(zeros).fill("0"), ...last].slice(0, NETWORK_GROUPS).join(":");
}

function groupsOf(text = ""): string[] {
  return text === "" ? [] : text.split(":");
}
