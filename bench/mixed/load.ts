import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";
import type { Stage } from "../harness/stage.ts";

/** Milliseconds. */
export interface Latencies {
  readonly requests: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** What `main.go` reports of the time in which all its clients were there. */
export interface MixedReport extends Latencies {
  readonly clients: number;
  /** Requests a second. */
  readonly rate: number;
  readonly operations: Readonly<Record<string, Latencies>>;
}

/** Until all clients are there, and how long they stay. */
const RAMP = "10s";
const HOLD = "30s";

/** Builds the load generator, of the standard library alone, and resolves with the program. */
export function buildMixed(stage: Stage): Promise<string> {
  return buildGo(stage, import.meta.dirname);
}

/** Runs it. `rate` is in requests a second of all clients together; 0: as fast as they are answered. Rejects on any error. */
export async function runMixed(stage: Stage, program: string, url: string, rate: number): Promise<MixedReport> {
  const options = ["-url", url, "-ramp", RAMP, "-hold", HOLD, "-rate", String(rate)];
  return JSON.parse(await run(stage.pinning.on("both", [program, ...options])));
}
