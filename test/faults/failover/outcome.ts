import type { Call, History } from "../history.ts";
import { alignTable } from "../text-table.ts";
import type { Violation } from "../violations.ts";

/** The outcome of a scenario. */
export interface Outcome {
  readonly name: string;
  readonly title: string;
  readonly seconds: number;
  readonly history: History;
  readonly violations: readonly Violation[];
  /** Number of acknowledged changes that the final primary lacks. */
  readonly lost: number;
  /** Milliseconds until all nodes were ready; null: they never were. */
  readonly recovery: number | null;
  readonly notes: readonly string[];
  /** The reasons why the scenario failed; empty if it passed. */
  readonly failures: readonly string[];
}

const HEADINGS = [
  ...["scenario", "verifies", "changes", "violations", "late ms", "lost changes", "503", "no answer"],
  ...["longest outage ms", "ready again ms", "unexpected", "seconds"],
];

/** Returns a table with a row for each scenario. */
export function tableOf(outcomes: readonly Outcome[]): string {
  return alignTable([HEADINGS, ...outcomes.map(rowOf)]);
}

function rowOf({ name, title, history, violations, lost, recovery, seconds }: Outcome): string[] {
  const { calls, unexpected } = history;
  const numbers = [
    sum(calls, "verify"),
    sum(calls, "mutation"),
    violations.length,
    Math.round(Math.max(0, ...violations.map(({ late }) => late ?? 0))),
    lost,
    calls.filter(({ outcome }) => outcome === "unavailable").length,
    calls.filter(({ outcome }) => outcome === "lost").length,
    Math.round(longestOutage(calls)),
    recovery === null ? "never" : Math.round(recovery),
    unexpected.length,
    Math.round(seconds),
  ];
  return [`${name}: ${title}`, ...numbers.map(String)];
}

function sum(calls: readonly Call[], kind: Call["kind"]): number {
  const answered = calls.filter((call) => call.kind === kind && call.outcome === "answered");
  return answered.reduce((total, { count }) => total + count, 0);
}

/** Returns the longest time in which a node returned no verdict. */
function longestOutage(calls: readonly Call[]): number {
  const answered = calls.filter(({ kind, outcome }) => kind === "verify" && outcome === "answered");
  const byNode = Map.groupBy(answered, ({ node }) => node);
  const gaps = [...byNode.values()].flatMap((own) => {
    const ends = own.map(({ ended }) => ended).sort((a, b) => a - b);
    return ends.slice(1).map((end, place) => end - (ends[place] ?? end));
  });
  return gaps.reduce((longest, gap) => Math.max(longest, gap), 0);
}
