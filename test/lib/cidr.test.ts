import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allowsAddress, blockOf, coverEverything, parseCidr } from "../../src/lib/cidr.ts";
import { formatAddress, parseAddress } from "../../src/lib/ip-address.ts";
import { table } from "../support/conformance.ts";
import { address, ipv4, ipv6, normalized } from "./ip-addresses.ts";

const cidrOf = (text: string): string => {
  const parsed = parseCidr(text);
  return "cidr" in parsed ? parsed.cidr : parsed.problem;
};

const BLOCKS = table([
  ["203.0.113.0/24", "203.0.113.0/24"],
  ["203.0.113.7", "203.0.113.7/32"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["128.0.0.0/1", "128.0.0.0/1"],
  ["2001:DB8::/32", "2001:db8::/32"],
  ["2001:db8:0:0::1", "2001:db8::1/128"],
  ["::/0", "::/0"],
  ["8000::/1", "8000::/1"],
  ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
  ["::ffff:0:0/96", "0.0.0.0/0"],
  ["::ffff:10.0.0.1", "10.0.0.1/32"],
] as const);

test.each(BLOCKS)("%s is the block %s", (text, cidr) => {
  expect(parseCidr(text)).toEqual({ cidr });
  expect(parseCidr(cidr)).toEqual({ cidr });
});

const REFUSED = table([
  ["203.0.113.7/24", "has host bits set to the right of the prefix /24; use the containing block 203.0.113.0/24"],
  ["2001:db8::1/64", "has host bits set to the right of the prefix /64; use the containing block 2001:db8::/64"],
  ["::ffff:10.0.0.1/104", "has host bits set to the right of the prefix /8; use the containing block 10.0.0.0/8"],
  ["203.0.113.0/33", "must end with a prefix length from 0 to 32, such as /24"],
  ["203.0.113.0/", "must end with a prefix length from 0 to 32, such as /24"],
  ["203.0.113.0/024", "must end with a prefix length from 0 to 32, such as /24"],
  ["203.0.113.0/+8", "must end with a prefix length from 0 to 32, such as /24"],
  ["203.0.113.0/255.255.255.0", "must end with a prefix length from 0 to 32, such as /24"],
  ["203.0.113.0/24/24", "must end with a prefix length from 0 to 32, such as /24"],
  ["::ffff:0:0/95", "must end with a prefix length from 96 to 128, such as /120"],
  ["2001:db8::/129", "must end with a prefix length from 0 to 128, such as /120"],
  ["fe80::1%eth0/64", "must not have an IPv6 zone identifier"],
  ["010.0.0.0/8", "must not have leading zeros"],
  ["example.com", "must be an IPv4 or IPv6 address, or a CIDR block such as 203.0.113.0/24 or 2001:db8::/32"],
  ["10.0.0.0-10.0.0.9", "must be an IPv4 or IPv6 address, or a CIDR block such as 203.0.113.0/24 or 2001:db8::/32"],
  ["*", "must be an IPv4 or IPv6 address, or a CIDR block such as 203.0.113.0/24 or 2001:db8::/32"],
  ["", "must be an IPv4 or IPv6 address, or a CIDR block such as 203.0.113.0/24 or 2001:db8::/32"],
] as const);

test.each(REFUSED)("%j is refused: %s", (text, problem) => {
  expect(parseCidr(text)).toEqual({ problem });
});

const ALLOWED = table([
  ["10.0.0.0/8", "10.255.255.255", true],
  ["10.0.0.0/8", "11.0.0.0", false],
  ["10.0.0.0/8", "::ffff:10.1.2.3", true],
  ["10.0.0.0/8", "::10.1.2.3", false],
  ["0.0.0.0/0", "::1", false],
  ["::/0", "10.0.0.1", false],
  ["::/0", "::ffff:10.0.0.1", false],
  ["::/0", "::10.0.0.1", true],
  ["2001:db8::/33", "2001:db8:7fff::", true],
  ["2001:db8::/33", "2001:db8:8000::", false],
  ["fe80::/10", "fe80::1%eth0", false],
  ["0.0.0.0/0", "10.0.0.1:80", false],
  ["0.0.0.0/0", "10.0.0.01", false],
  ["0.0.0.0/0", "", false],
] as const);

test.each(ALLOWED)("whether %s allows %j: %s", (cidr, client, isAllowed) => {
  expect(allowsAddress([cidr], client)).toBe(isAllowed);
});

test("no block allows any address", () => {
  expect(allowsAddress([], "10.0.0.1")).toBe(false);
});

describe("against node:net", () => {
  /** A block, without its host bits, around an address. */
  const block = fc
    .oneof(
      fc.tuple(ipv4, fc.oneof(fc.integer({ min: 0, max: 32 }), fc.constantFrom(31, 32))),
      fc.tuple(ipv6, fc.integer({ min: 0, max: 128 })),
    )
    .map(([text, prefix]) => {
      const given = `${text}/${prefix}`;
      const parsed = cidrOf(given);
      return / is (\S+\/\d+)$/.exec(parsed)?.[1] ?? parsed;
    })
    .filter((cidr) => cidr.includes("/") && !cidr.includes(" "));

  /** Returns the first address of a block with this bit changed: it is in the block, or missed by little. */
  function near(cidr: string, bit: number): string {
    const groups = parseAddress(cidr.slice(0, cidr.indexOf("/"))) ?? [];
    const changed = (bit >> 4) % groups.length;
    return formatAddress(groups.map((group, place) => (place === changed ? group ^ (1 << (bit & 15)) : group)));
  }

  const bits = fc.nat({ max: 127 });
  const blocksAndClient = fc.array(block, { minLength: 1, maxLength: 64 }).chain((cidrs) => {
    const nearOne = fc.tuple(fc.constantFrom(...cidrs), bits).map(([cidr, bit]) => near(cidr, bit));
    return fc.tuple(fc.constant(cidrs), fc.oneof(address, nearOne, nearOne));
  });

  test("allows the same addresses", () => {
    fc.assert(
      fc.property(blocksAndClient, ([cidrs, client]) => {
        const family = isIP(normalized(client));
        const list = new BlockList();
        // A list of one family: net.BlockList takes a mapped address for an IPv6 address too.
        for (const cidr of cidrs) {
          const [base = "", prefix] = cidr.split("/");
          if (isIP(base) === family) list.addSubnet(base, Number(prefix), family === 4 ? "ipv4" : "ipv6");
        }
        expect(allowsAddress(cidrs, client)).toBe(list.check(normalized(client), family === 4 ? "ipv4" : "ipv6"));
        expect(allowsAddress([...cidrs], client)).toBe(allowsAddress(cidrs, client));
      }),
      { numRuns: 1000 },
    );
  });
});

test("blocks that are split at random cover everything, and no longer without one of them", () => {
  const splits = fc.array(fc.nat(), { maxLength: 40 });
  fc.assert(
    fc.property(splits, fc.nat(), (choices, left) => {
      const bits = 32;
      let blocks: { start: number; prefix: number }[] = [{ start: 0, prefix: 0 }];
      for (const choice of choices) {
        const at = choice % blocks.length;
        const { start, prefix } = blocks[at] ?? { start: 0, prefix: bits };
        if (prefix === bits) continue;
        const half = { start: start + 2 ** (bits - prefix - 1), prefix: prefix + 1 };
        blocks = [...blocks.toSpliced(at, 1), { start, prefix: prefix + 1 }, half];
      }
      const texts = blocks.map(({ start, prefix }) => {
        const words = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
        return `${words.join(".")}/${prefix}`;
      });
      expect(coverEverything(["2001:db8::/32", ...texts, "10.0.0.0/8"])).toBe(true);
      expect(coverEverything(["2001:db8::/32", ...texts.toSpliced(left % texts.length, 1)])).toBe(false);
    }),
  );
});

test.each([
  ["203.0.113.77", "203.0.113.0/24"],
  ["::ffff:203.0.113.77", "203.0.113.0/24"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
  ["::1", "::/48"],
  ["fe80::1%eth0", null],
  ["example.com", null],
])("the block of %s is %s", (address, block) => {
  expect(blockOf(address, 24, 48)).toBe(block);
});
