import type { Result, Results } from "../harness/results.ts";
import { type Bars, type Chart, drawChart } from "./chart.ts";

const PROTOCOLS: Readonly<Record<string, string>> = {
  "verify-rest": "REST, JSON over HTTP/1.1",
  "verify-grpc": "gRPC",
  "verify-connect-json": "Connect, JSON",
  "verify-connect-binary": "Connect, binary",
};

const SIZES: Readonly<Record<string, string>> = {
  "list-first": "list, page 1",
  "list-deep": "list, page 10,000",
  "list-actor": "list, by the most frequent actor",
  "list-actor-rare": "list, by the rarest actor",
  "list-actor-unknown": "list, by an unknown actor",
  "list-active": "list, active",
  "list-revoked": "list, revoked",
  "list-expired": "list, expired",
  "verify-miss": "verify miss",
};

/** Returns the charts by file name; a chart without measured figures is omitted. */
export function pictures({ scenarios }: Pick<Results, "scenarios">): Map<string, string> {
  const charts: [string, Chart][] = [
    [
      "throughput-by-protocol.svg",
      {
        title: "Verification of cached keys, one core",
        unit: "requests a second",
        subject: "Keyhold",
        baseline: "bare framework: a Fastify route, or @grpc/grpc-js",
        rows: rowsOf(scenarios, PROTOCOLS),
      },
    ],
    [
      "cost-by-keys.svg",
      {
        title: "Cost by number of keys",
        unit: "milliseconds a request",
        subject: "1,000,000 (miss: 5,000,000)",
        baseline: "page 1 at 1,000 keys (miss: at 10,000)",
        rows: rowsOf(scenarios, SIZES),
      },
    ],
  ];
  return new Map(charts.filter(([, { rows }]) => rows.length > 0).map(([name, chart]) => [name, drawChart(chart)]));
}

function rowsOf(results: readonly Result[], labels: Readonly<Record<string, string>>): Bars[] {
  return Object.entries(labels).flatMap(([name, label]) => {
    const result = results.find((one) => one.name === name);
    if (result === undefined || result.baseline === null) return [];
    return [{ label, subject: result.subject.median, baseline: result.baseline.median }];
  });
}
