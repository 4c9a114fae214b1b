import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Bound, type FigureKind, type Spread, spread } from "./statistics.ts";

/** What a scenario measures, in words. */
export interface Description {
  readonly name: string;
  /** Description of the measured work. */
  readonly work: string;
  /** Description of the baseline. */
  readonly against: string;
  readonly unit: string;
  readonly judged: FigureKind;
}

/** The result of one scenario. */
export interface Result extends Description {
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

/** The content of results.json: results by the names of scenarios, whose descriptions are in the code. */
interface Stored {
  readonly machine: Machine;
  readonly scenarios: Readonly<Record<string, StoredResult>>;
}

/** Samples, from which spreads are computed. */
interface StoredResult extends Pick<Result, "figure" | "time"> {
  readonly subject: readonly number[];
  readonly baseline: readonly number[] | null;
}

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

/** Returns the committed results of these scenarios, in this order; null before the first run. */
export async function readResults(descriptions: readonly Description[]): Promise<Results | null> {
  const stored = await readStored();
  if (stored === null) return null;
  const scenarios = descriptions.flatMap(({ name, work, against, unit, judged }): Result[] => {
    const result = stored.scenarios[name];
    if (result === undefined) return [];
    const [subject, baseline] = [spread(result.subject), result.baseline && spread(result.baseline)];
    return [{ ...{ name, work, against, unit, judged }, ...result, subject, baseline }];
  });
  return { machine: stored.machine, scenarios };
}

async function readStored(): Promise<Stored | null> {
  const text = await readFile(RESULTS, "utf8").catch(() => null);
  return text === null ? null : JSON.parse(text);
}

export async function readThresholds(): Promise<Thresholds> {
  return JSON.parse(await readFile(THRESHOLDS, "utf8"));
}

/** Merges new results into the committed ones, in this order; scenarios that did not run keep their results, removed ones do not. */
export async function saveResults(machine: Machine, measured: readonly Result[], order: readonly string[]) {
  const byName = new Map(Object.entries((await readStored())?.scenarios ?? {}));
  for (const { name, figure, time, subject, baseline } of measured)
    byName.set(name, { figure, time, subject: subject.samples, baseline: baseline?.samples ?? null });
  const scenarios = order.flatMap((name) => {
    const result = byName.get(name);
    return result === undefined ? [] : [[name, result]];
  });
  await writeFile(RESULTS, toText({ machine, scenarios: Object.fromEntries(scenarios) }));
}

/** Returns JSON in the format of the project's formatter: lists of numbers on one line. */
function toText(stored: Stored): string {
  const text = JSON.stringify(stored, rounded, 2);
  return `${text.replaceAll(/\[\s+([-\d.e+,\s]+?)\s+\]/g, (_, numbers: string) => `[${numbers.replaceAll(/\s+/g, " ")}]`)}\n`;
}

/** The noise exceeds the precision of four digits. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(4)) : value;
}
