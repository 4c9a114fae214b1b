import type { Fixture } from "../harness/fixture.ts";
import { run } from "../harness/program.ts";

export interface H2loadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** File with the body of every request. */
  readonly body: string;
  readonly connections: number;
  /** Concurrent streams per connection. */
  readonly streams: number;
}

export interface H2loadResult {
  /** Requests per second. */
  readonly rate: number;
  readonly succeeded: number;
  /** Failed, errored or timed out, or with a status other than 2xx. */
  readonly failed: number;
  /** Bytes of all responses, without headers and trailers. */
  readonly dataBytes: number;
}

export async function h2load(fixture: Fixture, options: H2loadOptions): Promise<H2loadResult> {
  const { url, headers, body, connections, streams } = options;
  const headerArguments = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const sizes = ["-t", "1", "-c", String(connections), "-m", String(streams), "-D", String(fixture.seconds)];
  return parseH2load(await run(fixture.pinning.on("load", ["h2load", ...sizes, "-d", body, ...headerArguments, url])));
}

export function parseH2load(output: string): H2loadResult {
  const number = (pattern: RegExp) => {
    const [, text] = pattern.exec(output) ?? [];
    if (text === undefined) throw new Error(`h2load printed no ${pattern.source}: ${output}`);
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
 * Returns requests per second. Throws if a call failed. A failed gRPC call has HTTP status 200, an error in its trailers and no data.
 * Therefore the received data must be that of as many responses of the expected size, plus at most `open` responses that the end of the
 * round has cut off, which h2load does not count.
 */
export function checkedGrpcRate(result: H2loadResult, answerBytes: number, open: number): number {
  const { rate, succeeded, failed, dataBytes } = result;
  if (succeeded === 0 || failed > 0) throw new Error(`${failed} of ${succeeded + failed} calls failed`);
  const answers = dataBytes / answerBytes;
  if (answers >= succeeded && answers <= succeeded + open) return rate;
  throw new Error(`${succeeded} responses of ${answerBytes} bytes have ${dataBytes} bytes of data`);
}
