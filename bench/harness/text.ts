import type { Result } from "./results.ts";
import { type Bound, isWithin, type Spread } from "./statistics.ts";

/** Formats a figure with three significant digits. */
export function figure(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return Number(value.toPrecision(3)).toString();
}

/** Formats a median with the minimum and the maximum. */
export function spreadText({ median, min, max }: Spread): string {
  return min === max ? figure(median) : `${figure(median)} (${figure(min)}–${figure(max)})`;
}

/** Formats the figure of a result: a ratio without, other figures with a unit. */
export function figureText({ judged, figure: value, unit }: Result): string {
  if (judged === "ratio") return `${value.toFixed(2)} ×`;
  return `${judged === "difference" && value >= 0 ? "+" : ""}${figure(value)} ${unit}`;
}

export function boundText({ at_least, at_most }: Bound): string {
  return [at_least === undefined ? [] : `≥ ${at_least}`, at_most === undefined ? [] : `≤ ${at_most}`].flat().join(", ");
}

/** Formats a result for the terminal. */
export function resultText(result: Result, bound: Bound | undefined): string {
  const lines = [
    `${result.name}: ${result.work}`,
    `  subject   ${spreadText(result.subject)} ${result.unit}`,
    ...(result.baseline === null
      ? []
      : [`  baseline  ${spreadText(result.baseline)} ${result.unit} · ${result.against}`]),
    `  ${result.judged.padEnd(8)}  ${figureText(result)}${verdict(result, bound)}`,
  ];
  return lines.join("\n");
}

/** Formats a result with the ratio of each round. */
export function comparisonText(result: Result, bound: Bound | undefined): string {
  const { subject, baseline } = result;
  const ratios = subject.samples.map((figure, round) => figure / (baseline?.samples[round] ?? Number.NaN));
  return `${resultText(result, bound)}\n  rounds    ${ratios.map((ratio) => ratio.toFixed(2)).join(" ")}`;
}

function verdict({ figure: value }: Result, bound: Bound | undefined): string {
  if (bound === undefined) return "";
  return `  ${isWithin(value, bound) ? "ok" : "MISSED"}, ${boundText(bound)}`;
}
