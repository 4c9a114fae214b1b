/** Prints how long it takes to judge an address against 64 blocks that it is not in, in microseconds: the text of the address is parsed too. */
import { allowsAddress } from "../../src/lib/cidr.ts";

const COUNT = 200_000;

/** IPv6 takes longer: more text, more words. */
const blocks = Array.from({ length: 64 }, (_, index) => `2001:db8:${index.toString(16)}:ffff::/64`);
const addresses = Array.from({ length: 64 }, (_, index) => `2001:db8:1234:${index.toString(16)}:5678:9abc:def0:1234`);

function judge(count: number): void {
  for (let index = 0; index < count; index++) {
    if (allowsAddress(blocks, addresses[index % addresses.length] ?? "")) throw new Error("no block has this address");
  }
}

judge(COUNT);
const start = performance.now();
judge(COUNT);
console.log(((performance.now() - start) * 1000) / COUNT);
