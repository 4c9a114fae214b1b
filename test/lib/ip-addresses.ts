import fc from "fast-check";

const octet = fc.integer({ min: 0, max: 255 });

export const ipv4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join("."));

/** Groups of IPv6, often zero so that "::" has work to do, often those of IPv4-mapped addresses. */
const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff }));
const ipv6Groups = fc.oneof(
  fc.array(group, { minLength: 8, maxLength: 8 }),
  fc.tuple(group, group).map((tail) => [0, 0, 0, 0, 0, 0xffff, ...tail]),
);

/** IPv6 in one of its text forms: padded or not, in either case, with "::" anywhere or nowhere, with an IPv4 tail or without. */
export const ipv6 = fc
  .record({
    groups: ipv6Groups,
    isPadded: fc.boolean(),
    isUpper: fc.boolean(),
    hasTail: fc.boolean(),
    gap: fc.nat({ max: 7 }),
  })
  .map(({ groups, isPadded, isUpper, hasTail, gap }) => {
    const hex = groups.map((one) => one.toString(16).padStart(isPadded ? 4 : 1, "0"));
    const tail = groups.slice(6).flatMap((one) => [one >> 8, one & 0xff]);
    const parts = hasTail ? [...hex.slice(0, 6), tail.join(".")] : hex;
    const limit = hasTail ? 6 : 8;
    let end = gap;
    while (end < limit && groups[end] === 0) end++;
    const text = end > gap ? `${parts.slice(0, gap).join(":")}::${parts.slice(end).join(":")}` : parts.join(":");
    return isUpper ? text.toUpperCase() : text;
  });

export const address = fc.oneof(ipv4, ipv6);

/** Text that is like an address: pieces of addresses in any order, and addresses with one character changed. */
export const almostAddress = fc.oneof(
  fc
    .array(
      fc.constantFrom("::", ":", ".", "0", "00", "1", "255", "256", "ffff", "10000", "g", "%", "/", "[", "]", " "),
      {
        maxLength: 16,
      },
    )
    .map((parts) => parts.join("")),
  fc
    .tuple(address, fc.nat({ max: 45 }), fc.constantFrom("", ":", ".", "0", "f", "-", " ", "\0", "%eth0", "/8", "٣"))
    .map(([text, at, piece]) => text.slice(0, at) + piece + text.slice(at + 1)),
  fc.string(),
);

/** Returns the form by which addresses are compared, by the URL parser: IPv4 in dotted decimal, IPv6 by RFC 5952. */
export function normalized(text: string): string {
  if (!text.includes(":")) return text;
  const host = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(host);
  if (mapped === null) return host;
  const [high = 0, low = 0] = mapped.slice(1).map((hex) => Number.parseInt(hex, 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}
