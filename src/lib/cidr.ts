import { BlockList, isIP } from "node:net";
import { memoize } from "./memoize.ts";

const compile = memoize((cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length] = cidr.split("/");
    list.addSubnet(address, Number(length), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
});

/** Returns whether one of the canonical CIDR blocks contains the address. An address that is not one is in none. */
export function allowsAddress(cidrs: readonly string[], address: string): boolean {
  const family = isIP(address);
  return family !== 0 && compile(cidrs).check(address, family === 6 ? "ipv6" : "ipv4");
}
