import fc from "fast-check";
import { expect, test } from "vitest";
import { allowsAddress } from "../../src/lib/cidr.ts";
import { clientAddressBehind, clientAddressFrom } from "../../src/lib/client-address.ts";
import { table } from "../support/conformance.ts";
import { address, almostAddress, normalized } from "./ip-addresses.ts";

const PROXIES = ["10.0.0.0/8", "2001:db8::/32"];
const clientOf = clientAddressBehind(PROXIES);

const ADDRESSES = table([
  ["the peer without a header", "10.0.0.1", undefined, "10.0.0.1"],
  ["the client of a proxy", "10.0.0.1", "203.0.113.7", "203.0.113.7"],
  ["a spoofed header of an untrusted peer", "203.0.113.9", "10.0.0.5", "203.0.113.9"],
  ["a spoofed address before that of the proxy", "10.0.0.1", "192.0.2.1, 203.0.113.7", "203.0.113.7"],
  ["two proxies", "10.0.0.1", "192.0.2.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"],
  ["an untrusted proxy in between", "10.0.0.1", "10.0.0.9, 203.0.113.7,10.0.0.2", "203.0.113.7"],
  ["only proxies", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["a mapped peer", "::ffff:10.0.0.1", "203.0.113.7", "203.0.113.7"],
  ["mapped addresses", "10.0.0.1", "::ffff:203.0.113.7, ::ffff:a00:2", "203.0.113.7"],
  ["IPv6", "2001:db8::1", "2001:DB9:0::7", "2001:db9::7"],
  ["ports", "10.0.0.1", "203.0.113.7:4711, 10.0.0.2:80", "203.0.113.7"],
  ["IPv6 in brackets", "10.0.0.1", "[2001:db9::7], [2001:db8::2]:443", "2001:db9::7"],
  ["garbage left of the client", "10.0.0.1", '<script>, "", 203.0.113.7', "203.0.113.7"],
  ["garbage in its place", "10.0.0.1", "203.0.113.7, unknown", ""],
  ["a unix socket in its place", "10.0.0.1", "203.0.113.7, unix:", ""],
  ["an obfuscated one (RFC 7239 §6.3)", "10.0.0.1", "_hidden", ""],
  ["nothing in its place", "10.0.0.1", "203.0.113.7, ", ""],
  ["an empty first place", "10.0.0.1", ", 10.0.0.2", ""],
  ["an empty header", "10.0.0.1", "", ""],
  ["a zone in the header", "10.0.0.1", "fe80::1%eth0", ""],
  ["an unclosed bracket", "10.0.0.1", "[2001:db9::7", ""],
  ["IPv4 in brackets", "10.0.0.1", "[203.0.113.7]", ""],
  ["a port that is none", "10.0.0.1", "203.0.113.7:", ""],
  ["the form of RFC 7239", "10.0.0.1", "for=203.0.113.7", ""],
  ["a peer with a zone", "fe80::1%eth0", "203.0.113.7", "fe80::1"],
  ["a peer that is gone", "", "203.0.113.7", ""],
] as const);

test.each(ADDRESSES)("%s: peer %j, header %j: %j", (_, peer, header, client) => {
  expect(clientOf(peer, header)).toBe(client);
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "::ffff:203.0.113.9"],
  ["fe80::1%eth0", "fe80::1"],
  ["", ""],
])("without proxies the client is the peer %j", (peer, client) => {
  expect(clientAddressBehind([])(peer, "10.0.0.1")).toBe(client);
});

/** Reads the header as a list, from the left, with the URL parser. */
function expectedClient(peer: string, header: readonly string[]): string {
  const hops = [...header, peer];
  const untrusted = hops.findLastIndex((hop) => !PROXIES.some((proxy) => allowsAddress([proxy], hop)));
  const client = hops[Math.max(untrusted, 0)] ?? "";
  return /^[\d.]+$|:/.test(client) && URL.canParse(`http://${client.includes(":") ? `[${client}]` : client}`)
    ? normalized(client)
    : "";
}

const hop = fc.oneof(
  fc.nat({ max: 255 }).map((last) => `10.0.0.${last}`),
  fc.nat({ max: 255 }).map((last) => `2001:db8::${last}`),
  address,
  fc.constantFrom("unknown", "_x", ""),
);

test("the client is the right-most address that is not trusted, in any header", () => {
  fc.assert(
    fc.property(fc.oneof(address, hop), fc.array(hop, { minLength: 1, maxLength: 6 }), (peer, header) => {
      expect(clientOf(peer, header.join(", "))).toBe(expectedClient(peer, header));
    }),
    { numRuns: 2000 },
  );
});

test("whatever a client writes, the address that the proxy appends counts", () => {
  fc.assert(
    fc.property(fc.oneof(almostAddress, fc.string()), (spoofed) => {
      expect(clientOf("10.0.0.1", `${spoofed}, 203.0.113.7`)).toBe("203.0.113.7");
      expect(clientOf("192.0.2.1", spoofed)).toBe("192.0.2.1");
    }),
  );
});

test("a long header of trusted addresses takes time in proportion to its length", () => {
  const header = Array(5_000).fill("10.0.0.1").join(",");
  expect(clientOf("10.0.0.1", `${"[:".repeat(8_000)}, ${header}`)).toBe("");
});

const OF_GATEWAYS = table([
  ["a gateway", "10.0.0.1", "203.0.113.7", "203.0.113.7"],
  ["a spoofed address before that of the gateway", "10.0.0.1", "10.9.9.9, 192.0.2.1, 203.0.113.7", "203.0.113.7"],
  ["two gateways", "10.0.0.1", "192.0.2.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"],
  ["a mapped gateway", "::ffff:10.0.0.1", "::ffff:203.0.113.7", "203.0.113.7"],
  ["IPv6", "2001:db8::1", "[2001:DB9::7]:443", "2001:db9::7"],
  ["a gateway without the header", "10.0.0.1", undefined, ""],
  ["a gateway with an empty header", "10.0.0.1", "", ""],
  ["a gateway with garbage", "10.0.0.1", "203.0.113.7, unknown", ""],
  ["a peer that is not trusted", "203.0.113.9", "192.0.2.1", ""],
  ["a peer that is not trusted, without the header", "203.0.113.9", undefined, ""],
  ["a peer that is gone", "", "203.0.113.7", ""],
] as const);

test.each(OF_GATEWAYS)("for gateways, %s: peer %j, header %j: %j", (_, peer, header, client) => {
  expect(clientAddressFrom(PROXIES)(peer, header)).toBe(client);
});

test("without trusted gateways no client is known, and never the gateway taken for one", () => {
  for (const header of [undefined, "203.0.113.7"]) expect(clientAddressFrom([])("10.0.0.1", header)).toBe("");
});
