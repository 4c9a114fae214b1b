import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";
import type { Stage } from "../harness/stage.ts";

/** Milliseconds. */
export interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** What `main.go` reports. Each refusal was 503 with `Retry-After`, and each question for health was answered 200. */
export interface OverloadReport {
  /** A second. */
  readonly sent: number;
  /** A second, with 200. */
  readonly answered: number;
  readonly done: Latencies;
  readonly refused: Latencies;
  readonly health: Latencies;
}

export interface OverloadOptions {
  readonly url: string;
  readonly path: string;
  readonly noCache: boolean;
  /** A file of JSON, one body a line, none of which has a line break. */
  readonly bodies: string;
  /** Requests a second, whether those before are answered or not. */
  readonly rate: number;
  readonly seconds: number;
}

/** Builds the load generator, of the standard library alone, and resolves with the program. */
export function buildOverload(stage: Stage): Promise<string> {
  return buildGo(stage, import.meta.dirname);
}

/** Runs it. Rejects on any other answer than 200 and 503 with `Retry-After`, and when health was not answered 200. */
export async function runOverload(stage: Stage, program: string, options: OverloadOptions): Promise<OverloadReport> {
  const { url, path, noCache, bodies, rate, seconds } = options;
  const headers = noCache ? ["-headers", "Cache-Control: no-cache"] : [];
  const load = ["-bodies", bodies, "-rate", String(Math.round(rate)), "-hold", `${seconds}s`];
  const command = [program, "-address", new URL(url).host, "-path", path, ...headers, ...load];
  return JSON.parse(await run(stage.pinning.on("load", command)));
}
