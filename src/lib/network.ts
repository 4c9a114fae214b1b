/** A network prefix has 4 groups of 16 bits: one customer usually has a whole /64 (RFC 6177). */
const NETWORK_GROUPS = 4;

/** Returns the network of a client: its IPv4 address, also if mapped into IPv6, or the first 64 bits of its IPv6 address. */
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
