import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Bound, type FigureKind, type Spread, spread } from "./statistics.ts";

/** The result of one scenario. */
export interface Result {
  readonly name: string;
  readonly work: string;
  readonly against: string;
  readonly unit: string;
  readonly judged: FigureKind;
  readonly subject: Spread;
  readonly baseline: Spread | null;
  /** The figure that is compared with the threshold. */
  readonly figure: number;
  /** Time of the measurement, RFC 3339. */
  readonly time: string;
}

/** Properties of the machine and versions of programs, by name. */
export type Machine = Readonly<Record<string, string>>;

export interface Results {
  readonly machine: Machine;
  readonly scenarios: readonly Result[];
}

/** A result in results.json, with samples from which its spreads are computed. */
type StoredResult = Omit<Result, "subject" | "baseline"> & {
  readonly subject: readonly number[];
  readonly baseline: readonly number[] | null;
};

/** The bound whose violation fails the run, with a margin for noise, and the goal. */
export interface Threshold extends Bound {
  /** None: it is only compared with another checkout. */
  readonly wanted?: Bound;
  /** The bound for a comparison with another checkout (`--against`). */
  readonly against?: Bound;
}

export type Thresholds = Readonly<Record<string, Threshold>>;

const RESULTS = resolve(import.meta.dirname, "../results.json");
const THRESHOLDS = resolve(import.meta.dirname, "../thresholds.json");

/** Returns the committed results; null before the first run. */
export async function readResults(): Promise<Results | null> {
  const text = await readFile(RESULTS, "utf8").catch(() => null);
  if (text === null) return null;
  const { machine, scenarios }: { machine: Machine; scenarios: StoredResult[] } = JSON.parse(text);
  return { machine, scenarios: scenarios.map(fromStored) };
}

function fromStored({ subject, baseline, ...result }: StoredResult): Result {
  return { ...result, subject: spread(subject), baseline: baseline && spread(baseline) };
}

export async function readThresholds(): Promise<Thresholds> {
  return JSON.parse(await readFile(THRESHOLDS, "utf8"));
}

/** Merges new results into the committed ones; scenarios that did not run keep their results. */
export async function saveResults(machine: Machine, measured: readonly Result[], order: readonly string[]) {
  const known = (await readResults())?.scenarios ?? [];
  const results: Results = { machine, scenarios: merge(known, measured, order) };
  await writeFile(RESULTS, toText(results));
}

/** Returns JSON in the format of the project's formatter: lists of numbers on one line. */
function toText({ machine, scenarios }: Results): string {
  const stored = scenarios.map(
    ({ subject, baseline, ...result }): StoredResult => ({
      ...result,
      subject: subject.samples,
      baseline: baseline?.samples ?? null,
    }),
  );
  const text = JSON.stringify({ machine, scenarios: stored }, rounded, 2);
  return `${text.replaceAll(/\[\s+([-\d.e+,\s]+?)\s+\]/g, (_, numbers: string) => `[${numbers.replaceAll(/\s+/g, " ")}]`)}\n`;
}

/** Returns the results in this order of names, without those of removed scenarios. */
export function merge(known: readonly Result[], measured: readonly Result[], order: readonly string[]): Result[] {
  const byName = new Map([...known, ...measured].map((result) => [result.name, result]));
  return order.flatMap((name) => byName.get(name) ?? []);
}

/** The noise exceeds the precision of four digits. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(4)) : value;
}
