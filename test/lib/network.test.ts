import { expect, test } from "vitest";
import { networkOf } from "../../src/lib/network.ts";
import { table } from "../support/conformance.ts";

const SAMPLES = table([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::", "2001:db8:1:2"],
  ["2001:db8::6", "2001:db8:0:0"],
  ["2001:db8::5:6:7:8:9", "2001:db8:0:5"],
  ["fe80::1%eth0", "fe80:0:0:0"],
  ["::1", "0:0:0:0"],
  ["::", "0:0:0:0"],
  ["", ""],
] as const);

test.each(SAMPLES)("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
