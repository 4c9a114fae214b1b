import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Bound, Judgement, Spread } from "./statistics.ts";

/** What one scenario came to. */
export interface Result {
  readonly name: string;
  readonly work: string;
  readonly against: string;
  readonly unit: string;
  readonly judged: Judgement;
  readonly subject: Spread;
  readonly baseline: Spread | null;
  /** The judged figure. */
  readonly figure: number;
  /** When it was measured. */
  readonly time: string;
}

/** Facts of the machine and of the programs, by name. */
export type Machine = Readonly<Record<string, string>>;

export interface Results {
  readonly machine: Machine;
  readonly scenarios: readonly Result[];
}

/** What fails the run, with room for the noise of the machine, and what is wanted. */
export interface Floor extends Bound {
  readonly wanted: Bound;
  /** Of the same on another checkout (`--against`). */
  readonly against?: Bound;
}

export type Thresholds = Readonly<Record<string, Floor>>;

const RESULTS = resolve(import.meta.dirname, "../results.json");
const THRESHOLDS = resolve(import.meta.dirname, "../thresholds.json");

/** The committed results; null before the first run. */
export async function readResults(): Promise<Results | null> {
  const text = await readFile(RESULTS, "utf8").catch(() => null);
  return text === null ? null : JSON.parse(text);
}

export async function readThresholds(): Promise<Thresholds> {
  return JSON.parse(await readFile(THRESHOLDS, "utf8"));
}

/** Writes what was measured now over what was known; scenarios that did not run keep what they had. */
export async function saveResults(machine: Machine, measured: readonly Result[], order: readonly string[]) {
  const known = (await readResults())?.scenarios ?? [];
  const results: Results = { machine, scenarios: merge(known, measured, order) };
  await writeFile(RESULTS, toText(results));
}

/** JSON as the formatter of the project writes it: numbers of a list on one line. */
export function toText(results: Results): string {
  const text = JSON.stringify(results, rounded, 2);
  return `${text.replaceAll(/\[\s+([-\d.e+,\s]+?)\s+\]/g, (_, numbers: string) => `[${numbers.replaceAll(/\s+/g, " ")}]`)}\n`;
}

/** In this order of names; results of scenarios that are no more are dropped. */
export function merge(known: readonly Result[], measured: readonly Result[], order: readonly string[]): Result[] {
  const byName = new Map([...known, ...measured].map((result) => [result.name, result]));
  return order.flatMap((name) => byName.get(name) ?? []);
}

/** Four digits are more than the spread leaves of any figure. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(4)) : value;
}
