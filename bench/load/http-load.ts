import type { Fixture } from "../harness/fixture.ts";
import type { Measure } from "../harness/scenario.ts";
import { checkedRate, responseSize, type WrkOptions, wrk } from "./wrk.ts";

/** A wrong verdict also has status 200, but another size: the maximum deviation of the mean size from that of the first round. */
const SIZE_TOLERANCE = 0.02;

/** Measures one load in requests per second. The first responses must have been checked by the caller. */
export function httpLoad(fixture: Fixture, options: WrkOptions): Measure {
  let expected: number | null = null;
  return async () => {
    const result = await wrk(fixture, options);
    const rate = checkedRate(result);
    const size = responseSize(result);
    expected ??= size;
    if (Math.abs(size / expected - 1) > SIZE_TOLERANCE) {
      throw new Error(`responses of ${options.url} have ${size} bytes instead of ${expected}`);
    }
    return rate;
  };
}

export const JSON_HEADERS = { "content-type": "application/json" } as const;
export const PROTO_HEADERS = { "content-type": "application/proto" } as const;

/** Enough to keep one core busy without a queue that would hide slow responses. */
export const CONNECTIONS = 64;
