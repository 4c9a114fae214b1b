import type { Fixture } from "../harness/fixture.ts";
import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";

/** Milliseconds. */
export interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The report of `main.go`. Each rejection was 503 with `Retry-After`, and each health check returned 200. */
export interface OverloadReport {
  /** Requests per second. */
  readonly sent: number;
  /** Requests per second with status 200. */
  readonly answered: number;
  readonly done: Latencies;
  readonly refused: Latencies;
  readonly health: Latencies;
}

export interface OverloadOptions {
  readonly url: string;
  readonly path: string;
  readonly noCache: boolean;
  /** File of JSON bodies, one per line. */
  readonly bodies: string;
  /** Requests per second, sent without waiting for responses. */
  readonly rate: number;
  readonly seconds: number;
}

/** Builds the load generator, which uses only the standard library. Resolves to the path of the program. */
export function buildOverload(fixture: Fixture): Promise<string> {
  return buildGo(fixture, import.meta.dirname);
}

/** Runs the load generator. Rejects if a response is neither 200 nor 503 with `Retry-After`, or a health check is not 200. */
export async function runOverload(
  fixture: Fixture,
  program: string,
  options: OverloadOptions,
): Promise<OverloadReport> {
  const { url, path, noCache, bodies, rate, seconds } = options;
  const headers = noCache ? ["-headers", "Cache-Control: no-cache"] : [];
  const load = ["-bodies", bodies, "-rate", String(Math.round(rate)), "-hold", `${seconds}s`];
  const command = [program, "-address", new URL(url).host, "-path", path, ...headers, ...load];
  return JSON.parse(await run(fixture.pinning.on("load", command)));
}
