import { expect, test } from "vitest";
import { type H2loadResult, parseH2load, soundGrpcRate } from "../../bench/load/h2load.ts";
import { answerSize, parseWrk, soundRate } from "../../bench/load/wrk.ts";

const WRK = `Running 4s test @ http://127.0.0.1:4420/v2alpha1/admin/apiKeys:verify
  1 threads and 64 connections
Requests/sec:  30000.00

RESULT {"requests": 120000, "bytes": 60000000, "microseconds": 4000000, "p50": 1500, "p99": 3000, "refused": 0, "broken": 0}
`;

test("what wrk tells is read", () => {
  const result = parseWrk(WRK);
  expect(soundRate(result)).toBe(30_000);
  expect(answerSize(result)).toBe(500);
});

test("wrk without a result is an error that shows what it said", () => {
  expect(() => parseWrk("unable to connect")).toThrow("unable to connect");
});

test.each([{ refused: 1 }, { broken: 1 }, { requests: 0 }])("a round of wrk with %o counts for nothing", (change) => {
  expect(() => soundRate({ ...parseWrk(WRK), ...change })).toThrow();
});

const H2LOAD = `finished in 4.01s, 25000.25 req/s, 5.12MB/s
requests: 100001 total, 100129 started, 100001 done, 100001 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 100001 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 20.03MB (21000210) total, 1.14MB (1200012) headers (space savings 95.00%), 12.02MB (12600126) data
                     min         max         mean         sd        +/- sd
time for request:      308us     29.12ms      5.10ms      1.20ms    80.00%
`;

test("what h2load tells is read", () => {
  expect(parseH2load(H2LOAD)).toEqual({ rate: 25_000.25, succeeded: 100_001, failed: 0, dataBytes: 12_600_126 });
});

test.each([
  ["0 failed", "7 failed"],
  ["0 errored", "7 errored"],
  ["0 timeout", "7 timeout"],
  ["0 3xx", "7 3xx"],
  ["0 4xx", "7 4xx"],
  ["0 5xx", "7 5xx"],
])("h2load's %s is seen when it is %s", (none, some) => {
  expect(parseH2load(H2LOAD.replace(none, some)).failed).toBe(7);
});

test("h2load without figures is an error that shows what it said", () => {
  expect(() => parseH2load("could not connect")).toThrow("could not connect");
});

const CALLS: H2loadResult = { rate: 1000, succeeded: 1000, failed: 0, dataBytes: 126_000 };

test("calls count when their data is that of right answers, and of those that were cut off", () => {
  expect(soundGrpcRate(CALLS, 126, 16)).toBe(1000);
  expect(soundGrpcRate({ ...CALLS, dataBytes: 126 * 1016 }, 126, 16)).toBe(1000);
});

test.each([
  ["calls that failed in their trailers", { dataBytes: 126_000 - 126 }],
  ["longer answers", { dataBytes: 126 * 1017 }],
  ["failures", { failed: 1 }],
  ["no call", { succeeded: 0 }],
])("%s count for nothing", (_, change) => {
  expect(() => soundGrpcRate({ ...CALLS, ...change }, 126, 16)).toThrow();
});
