import { linesOf } from "./log-lines.ts";

/** A sample of a scrape. */
export interface Scraped {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Returns the metrics at this URL. */
export async function scrape(url: string): Promise<Scraped[]> {
  const response = await fetch(url);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the scrape answered ${response.status}: ${text}`);
  return text.split("\n").flatMap((line) => (line === "" || line.startsWith("#") ? [] : [sampleOf(line)]));
}

function sampleOf(line: string): Scraped {
  const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === "") throw new Error(`not a sample: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", text = ""]) => [label, text]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}

/** Returns the sum of the samples with this name and these labels; NaN if there is none. */
export function total(samples: readonly Scraped[], name: string, labels: Record<string, string> = {}): number {
  const found = samples.filter(
    (one) => one.name === name && Object.entries(labels).every(([label, text]) => one.labels[label] === text),
  );
  return found.length === 0 ? Number.NaN : found.reduce((sum, { value }) => sum + value, 0);
}

/** Returns the URL of a server's metrics, from its log. */
export function metricsUrl(log: string): string {
  return linesOf(log).find(({ metrics }) => metrics !== undefined)?.metrics;
}
