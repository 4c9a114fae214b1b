import { run } from "../harness/program.ts";
import type { Stage } from "../harness/stage.ts";

export interface H2loadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A file that holds the one body that every request has. */
  readonly body: string;
  readonly connections: number;
  /** Streams at once on each. */
  readonly streams: number;
}

export interface H2loadResult {
  /** Requests a second. */
  readonly rate: number;
  readonly succeeded: number;
  /** Failed, errored, timed out, or of another status than 2xx. */
  readonly failed: number;
  /** Of all answers, without headers and trailers. */
  readonly dataBytes: number;
}

export async function h2load(stage: Stage, options: H2loadOptions): Promise<H2loadResult> {
  const { url, headers, body, connections, streams } = options;
  const headerArguments = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const sizes = ["-t", "1", "-c", String(connections), "-m", String(streams), "-D", String(stage.seconds)];
  return parseH2load(await run(stage.pinning.on("load", ["h2load", ...sizes, "-d", body, ...headerArguments, url])));
}

export function parseH2load(output: string): H2loadResult {
  const number = (pattern: RegExp) => {
    const [, text] = pattern.exec(output) ?? [];
    if (text === undefined) throw new Error(`h2load told no ${pattern.source}: ${output}`);
    return Number(text);
  };
  const statuses = number(/^status codes: \d+ 2xx, (\d+) 3xx/m) + number(/(\d+) 4xx/) + number(/(\d+) 5xx/);
  const lost = number(/(\d+) failed/) + number(/(\d+) errored/) + number(/(\d+) timeout/);
  return {
    rate: number(/^finished in .*, ([\d.]+) req\/s/m),
    succeeded: number(/(\d+) succeeded/),
    failed: statuses + lost,
    dataBytes: number(/\((\d+)\) data$/m),
  };
}

/**
 * Requests a second. Throws if one failed. gRPC says that a call failed in the trailers of an answer that is 200 and has no
 * data, so the data must be that of as many answers of the expected size; and of those that the end of a round cut off, `open`
 * at the most, which are not counted otherwise.
 */
export function soundGrpcRate(result: H2loadResult, answerBytes: number, open: number): number {
  const { rate, succeeded, failed, dataBytes } = result;
  if (succeeded === 0 || failed > 0) throw new Error(`${failed} of ${succeeded + failed} calls failed`);
  const answers = dataBytes / answerBytes;
  if (answers >= succeeded && answers <= succeeded + open) return rate;
  throw new Error(`the data of ${succeeded} answers of ${answerBytes} bytes is ${dataBytes}`);
}
