import { expect, test } from "vitest";
import { checkedGrpcRate, type H2loadResult, parseH2load } from "../../bench/load/h2load.ts";
import { checkedRate, parseWrk, responseSize } from "../../bench/load/wrk.ts";

const WRK = `Running 4s test @ http://127.0.0.1:4420/v2alpha1/admin/apiKeys:verify
  1 threads and 64 connections
Requests/sec:  30000.00

RESULT {"requests": 120000, "bytes": 60000000, "microseconds": 4000000, "p50": 1500, "p99": 3000, "refused": 0, "broken": 0}
`;

test("the output of wrk is parsed", () => {
  const result = parseWrk(WRK);
  expect(checkedRate(result)).toBe(30_000);
  expect(responseSize(result)).toBe(500);
});

test("output of wrk without a result is an error that shows the output", () => {
  expect(() => parseWrk("unable to connect")).toThrow("unable to connect");
});

test.each([{ refused: 1 }, { broken: 1 }, { requests: 0 }])("a round of wrk with %o is rejected", (change) => {
  expect(() => checkedRate({ ...parseWrk(WRK), ...change })).toThrow();
});

const H2LOAD = `finished in 4.01s, 25000.25 req/s, 5.12MB/s
requests: 100001 total, 100129 started, 100001 done, 100001 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 100001 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 20.03MB (21000210) total, 1.14MB (1200012) headers (space savings 95.00%), 12.02MB (12600126) data
                     min         max         mean         sd        +/- sd
time for request:      308us     29.12ms      5.10ms      1.20ms    80.00%
`;

test("the output of h2load is parsed", () => {
  expect(parseH2load(H2LOAD)).toEqual({ rate: 25_000.25, succeeded: 100_001, failed: 0, dataBytes: 12_600_126 });
});

test.each([
  ["0 failed", "7 failed"],
  ["0 errored", "7 errored"],
  ["0 timeout", "7 timeout"],
  ["0 3xx", "7 3xx"],
  ["0 4xx", "7 4xx"],
  ["0 5xx", "7 5xx"],
])("output of h2load with %s replaced by %s counts as failed", (none, some) => {
  expect(parseH2load(H2LOAD.replace(none, some)).failed).toBe(7);
});

test("output of h2load without figures is an error that shows the output", () => {
  expect(() => parseH2load("could not connect")).toThrow("could not connect");
});

const CALLS: H2loadResult = { rate: 1000, succeeded: 1000, failed: 0, dataBytes: 126_000 };

test("calls count if the received data is that of expected responses and of those cut off", () => {
  expect(checkedGrpcRate(CALLS, 126, 16)).toBe(1000);
  expect(checkedGrpcRate({ ...CALLS, dataBytes: 126 * 1016 }, 126, 16)).toBe(1000);
});

test.each([
  ["calls that failed in their trailers", { dataBytes: 126_000 - 126 }],
  ["longer answers", { dataBytes: 126 * 1017 }],
  ["failures", { failed: 1 }],
  ["no call", { succeeded: 0 }],
])("%s are rejected", (_, change) => {
  expect(() => checkedGrpcRate({ ...CALLS, ...change }, 126, 16)).toThrow();
});
