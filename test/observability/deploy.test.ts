import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { derive } from "../support/conformance.ts";
import { forwardAuth } from "../support/forward-auth.ts";
import { eventually } from "../support/keyhold.ts";
import { issue, type Json, restClient, verify } from "../support/rest.ts";
import { metricsUrl, type Scraped, scrape } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const read = (path: string) => readFileSync(resolve(import.meta.dirname, "../..", path), "utf8");

const rules: Json[] = parse(read("deploy/prometheus/alerts.yml")).groups.flatMap(({ rules }: Json) => rules);
const dashboard: Json = JSON.parse(read("deploy/grafana/keyhold.json"));

/** The row of each metric in docs/metrics.md: its type and labels. */
const documented = new Map(
  [...read("docs/metrics.md").matchAll(/^\| `(keyhold_\w+)` \| (\w+) \| ([^|]*)\|/gm)].map(
    ([, name = "", type = "", labels = ""]) => [
      name,
      { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label) },
    ],
  ),
);

/** Metrics of processes only, covered by test/observability/workers.test.ts and test/durability/uncaught-workers.test.ts. */
const OF_PROCESSES = [
  "keyhold_workers",
  "keyhold_workers_configured",
  "keyhold_worker_restarts_total",
  "keyhold_uncaught_total",
];

/** Labels that Prometheus adds. */
const OF_SCRAPES = ["job", "instance", "le"];

/** A selected series: its metric and the labels of its matchers. */
interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

interface Query {
  readonly selectors: Selector[];
  /** Labels of the grouping. */
  readonly grouping: string[];
}

/** Parses like Prometheus' own console. Throws for invalid PromQL. */
function analyze(text: string): Query {
  const query = text.replaceAll("$__rate_interval", "5m");
  const all = (node: SyntaxNode, name: string): SyntaxNode[] => {
    const found: SyntaxNode[] = [];
    node.cursor().iterate((one) => {
      if (one.from >= node.from && one.to <= node.to && one.name === name) found.push(one.node);
    });
    return found;
  };
  const { topNode } = parser.parse(query);
  if (all(topNode, "⚠").length > 0) throw new Error(`not PromQL: ${text}`);
  const textOf = ({ from, to }: SyntaxNode) => query.slice(from, to);
  const selectors = all(topNode, "VectorSelector").map((node) => ({
    metric: node.getChild("Identifier") === null ? "" : textOf(node.getChild("Identifier") ?? node),
    labels: all(node, "LabelName").map(textOf),
  }));
  const grouping = all(topNode, "GroupingLabels").flatMap((node) => all(node, "LabelName").map(textOf));
  return { selectors, grouping };
}

const panels: Json[] = dashboard.panels;
const queries = [
  ...rules.map(({ expr }): string => expr),
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }: Json): string => expr)),
];

let server: TestServer;
let samples: Scraped[];

beforeAll(async () => {
  server = await startTestServer({
    ...{ KEYHOLD_METRICS_PORT: "0", KEYHOLD_LEASE_TTL: "1s" },
    KEYHOLD_GATEWAYS: "forward-auth",
  });
  const rest = restClient(server);
  const { secret } = await issue(rest, { rate_limits: [{ name: "requests", quota: 9, window: "1m" }] });
  await verify(rest, secret);
  await derive(rest, secret);
  await forwardAuth(server, { headers: [["X-Api-Key", secret]] });
  const url = metricsUrl(server.log());
  // Available after the first renewal of the lease, and after the first success of a job.
  const late = [
    "keyhold_feed_lag_seconds",
    "keyhold_background_last_success_timestamp_seconds",
    "keyhold_admin_tokens_expiring",
  ];
  await eventually(async () => {
    samples = await scrape(url);
    return late.every((one) => samples.some(({ name }) => name === one));
  });
});

afterAll(() => server.close());

const bare = (name: string) => name.replace(/_(bucket|sum|count)$/, "");

test("docs/metrics.md lists exactly the metrics of the server, with their labels", () => {
  const own = samples.filter(({ name }) => name.startsWith("keyhold_"));
  const served = Map.groupBy(own, ({ name }) => (documented.has(name) ? name : bare(name)));
  const labels = Object.fromEntries(
    [...served].map(([name, of]) => [name, [...new Set(of.flatMap((one) => Object.keys(one.labels)))].sort()]),
  );
  const told = [...documented].filter(([name]) => !OF_PROCESSES.includes(name));
  const known = told.map(([name, of]) => [name, [...of.labels, ...(of.type === "histogram" ? ["le"] : [])].sort()]);
  expect(known.length).toBeGreaterThan(25);
  expect(labels).toEqual(Object.fromEntries(known));
});

test("alerts and dashboard use existing metrics and labels", () => {
  expect(queries.length).toBeGreaterThan(50);
  const names = new Set([...samples.map(({ name }) => name), ...OF_PROCESSES, "up"]);
  for (const query of queries) {
    const { selectors, grouping } = analyze(query);
    expect(selectors.length).toBeGreaterThan(0);
    expect(selectors.map(({ metric }) => metric).filter((metric) => !names.has(metric))).toEqual([]);
    const labels = (metric: string) => documented.get(metric)?.labels ?? documented.get(bare(metric))?.labels ?? [];
    for (const { metric, labels: chosen } of selectors) {
      const unknown = [...chosen, ...grouping].filter((name) => ![...labels(metric), ...OF_SCRAPES].includes(name));
      expect({ query, unknown }).toEqual({ query, unknown: [] });
    }
  }
});

test("the dashboard shows every metric", () => {
  const shown = new Set(queries.flatMap((query) => analyze(query).selectors.map(({ metric }) => metric)));
  const hidden = [...documented.keys()].filter((name) => !shown.has(name) && !shown.has(`${name}_bucket`));
  expect(hidden).toEqual([]);
});

test("every alert has a description and a remedy", () => {
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, annotations, labels } of rules) {
    expect(alert).toMatch(/^Keyhold[A-Z]\w+$/);
    expect(Object.keys(annotations)).toEqual(["summary", "description"]);
    expect(labels.severity).toMatch(/^(critical|warning)$/);
  }
});

test("detects invalid PromQL", () => {
  expect(() => analyze("sum(rate(a[5m])")).toThrow("not PromQL");
});
