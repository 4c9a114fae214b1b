import type { Call, History, Phase } from "./history.ts";
import { alignTable } from "./text-table.ts";
import type { Violation } from "./violations.ts";

export interface Totals {
  readonly verifies: number;
  readonly mutations: number;
  readonly violations: number;
  readonly unexpected: number;
  /** Number of records that were compared with acknowledged changes. */
  readonly records: number;
  /** Number of different rounds with one fault, and with a pair. */
  readonly singles: number;
  readonly pairs: number;
  /** Kinds of changes whose coherence the run must have tested, but none was acknowledged. */
  readonly missing: readonly string[];
}

/** Counts answered verdicts and changes. */
export function totalsOf(history: History, violations: readonly Violation[]): Totals {
  return {
    verifies: sum(answered(history.calls, "verify")),
    mutations: sum(answered(history.calls, "mutation")),
    violations: violations.length,
    unexpected: history.unexpected.length,
    records: history.registers.flatMap(({ reads }) => reads.filter(({ by }) => by === "list")).length,
    singles: roundsOf(history, 1),
    pairs: roundsOf(history, 2),
    missing: missingKinds(history),
  };
}

function missingKinds({ registers, revocations }: History): string[] {
  const mutations = registers.flatMap((register) => register.mutations);
  const isMissing = (kind: string) => !mutations.some((one) => one.kind === kind && one.acknowledged !== null);
  const isRevoked = revocations.some(({ acknowledged }) => acknowledged !== null);
  return [...["disable", "enable"].filter(isMissing), ...(isRevoked ? [] : ["revocation of a signing key"])];
}

/** Returns the number of different rounds with this number of faults. */
function roundsOf({ phases }: History, faults: number): number {
  return new Set(phases.filter((phase) => phase.faults.length === faults).map((phase) => phase.faults.join())).size;
}

const HEADINGS = ["fault", "rounds", "verifies", "mutations", "violations", "503", "lost", "mutation ms", "verify ms"];

/** Calls and violations that began in one phase. */
interface Slice {
  readonly phase: Phase;
  readonly calls: readonly Call[];
  readonly violations: number;
}

/**
 * Returns the table by fault, alone and paired: a round of two faults counts for both. Calls belong to the faults that were active when
 * they began. Times are the median, the 99th percentile and the maximum of calls to nodes that could answer.
 */
export function tableOf(history: History, violations: readonly Violation[]): string {
  const [calls, bad] = [byPhase(history, history.calls), byPhase(history, violations)];
  const slices = history.phases.map(
    (phase): Slice => ({ phase, calls: calls.get(phase) ?? [], violations: bad.get(phase)?.length ?? 0 }),
  );
  const names = [...new Set(history.phases.flatMap(({ faults }) => faults))].sort();
  return alignTable([
    HEADINGS,
    row(
      "none",
      slices.filter(({ phase }) => phase.faults.length === 0),
    ),
    ...names.flatMap((name) =>
      rowsOf(
        name,
        slices.filter(({ phase }) => phase.faults.includes(name)),
      ),
    ),
    row("all", slices),
  ]);
}

function rowsOf(name: string, slices: readonly Slice[]): string[][] {
  const alone = slices.filter(({ phase }) => phase.faults.length === 1);
  const paired = slices.filter(({ phase }) => phase.faults.length > 1);
  return [row(name, alone), ...(paired.length === 0 ? [] : [row("  with another", paired)])];
}

function byPhase<T extends { readonly began: number }>(
  history: History,
  all: readonly T[],
): Map<Phase | undefined, T[]> {
  return Map.groupBy(all, ({ began }) => history.phaseAt(began));
}

function row(name: string, slices: readonly Slice[]): string[] {
  const calls = slices.flatMap((slice) => slice.calls);
  const unaffected = slices.flatMap((slice) => slice.calls.filter(({ node }) => !slice.phase.victims.includes(node)));
  const numbers = [
    slices.filter(({ phase }) => phase.faults.length > 0).length,
    sum(answered(calls, "verify")),
    sum(answered(calls, "mutation")),
    slices.reduce((total, { violations }) => total + violations, 0),
    calls.filter(({ outcome }) => outcome === "unavailable").length,
    calls.filter(({ outcome }) => outcome === "lost").length,
  ];
  return [name, ...numbers.map(String), times(answered(unaffected, "mutation")), times(answered(unaffected, "verify"))];
}

function answered(calls: readonly Call[], kind: Call["kind"]): Call[] {
  return calls.filter((call) => call.kind === kind && call.outcome === "answered");
}

function times(calls: readonly Call[]): string {
  const sorted = calls.map(({ began, ended }) => ended - began).sort((a, b) => a - b);
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `${at(0.5)} / ${at(0.99)} / ${at(1)}`;
}

function sum(calls: readonly Call[]): number {
  return calls.reduce((total, { count }) => total + count, 0);
}
