import type { Machine, Result, Results, Threshold, Thresholds } from "../harness/results.ts";
import { isWithin } from "../harness/statistics.ts";
import { boundText, figureText, spreadText } from "../harness/text.ts";
import { pictures } from "./pictures.ts";

const BEGIN = "<!-- written by bench/publish/main.ts from bench/results.json -->";
const END = "<!-- end of what is written -->";

/** Returns the document with the current results. Throws if it lacks the markers. */
export function withResults(document: string, results: Results, thresholds: Thresholds): string {
  const [before, rest] = document.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`the document lacks ${BEGIN} or ${END}`);
  return `${before}${BEGIN}\n\n${resultsText(results, thresholds)}\n\n${END}${after}`;
}

function resultsText(results: Results, thresholds: Thresholds): string {
  const images = [...pictures(results).keys()].map((name) => `![${name}](img/${name})`);
  return [...images, tableOf(results.scenarios, thresholds), machineText(results.machine)].join("\n\n");
}

function tableOf(results: readonly Result[], thresholds: Thresholds): string {
  const head = ["Work", "Compared with", "Keyhold", "Baseline", "Result", "Wanted", "Threshold"];
  const rows = results.map((result) => [
    `${result.work} \`${result.name}\``,
    result.against,
    `${spreadText(result.subject)} ${result.unit}`,
    result.baseline === null ? "" : `${spreadText(result.baseline)} ${result.unit}`,
    figureText(result),
    ...boundCells(result, thresholds[result.name]),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function boundCells({ figure }: Result, threshold: Threshold | undefined): string[] {
  if (threshold?.wanted === undefined) return ["", ""];
  const { wanted } = threshold;
  return [`${boundText(wanted)}${isWithin(figure, wanted) ? "" : ": **short**"}`, boundText(threshold)];
}

function machineText(machine: Machine): string {
  return Object.entries(machine)
    .map(([name, value]) => `- ${name}: ${value}`)
    .join("\n");
}
