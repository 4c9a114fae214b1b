import fc from "fast-check";
import { expect, test } from "vitest";
import { formatAddress, parseAddress } from "../../src/lib/ip-address.ts";
import { table } from "../support/conformance.ts";
import { address, normalized } from "./ip-addresses.ts";

const CANONICAL = table([
  ["203.0.113.7", "203.0.113.7"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["::", "::"],
  ["::1", "::1"],
  ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:c000:201", "192.0.2.1"],
  ["0000:0000:0000:0000:0000:ffff:255.255.255.255", "255.255.255.255"],
  ["::192.0.2.1", "::c000:201"],
] as const);

test.each(CANONICAL)("the canonical text of %s is %s", (text, canonical) => {
  const parsed = parseAddress(text);
  expect(parsed && formatAddress(parsed)).toBe(canonical);
});

test.each([
  ...[
    "",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "1.2.3.256",
    "01.2.3.4",
    "1.2.3.00",
    "::01.2.3.4",
    "1.2.3.4:80",
    " 1.2.3.4",
  ],
  ...[
    "1.2.3.4\n",
    "[::1]",
    ":",
    "1::2::3",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4::5:6:7:8",
    "fe80::1%eth0",
    "::ffff:1.2.3.4/128",
    "١.٢.٣.٤",
  ],
])("%j is no address", (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

test("writes addresses as the URL parser does, and reads them again", () => {
  fc.assert(
    fc.property(address, (text) => {
      const parsed = parseAddress(text) ?? [];
      const canonical = formatAddress(parsed);
      expect(canonical).toBe(normalized(text));
      expect(parseAddress(canonical)).toEqual(parsed);
    }),
    { numRuns: 2000 },
  );
});
