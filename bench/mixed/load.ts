import type { Fixture } from "../harness/fixture.ts";
import { buildGo } from "../harness/go.ts";
import { run } from "../harness/program.ts";

/** Milliseconds. */
export interface Latencies {
  readonly requests: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** The report of `main.go` on the time after all clients have started. */
export interface MixedReport extends Latencies {
  readonly clients: number;
  /** Requests per second. */
  readonly rate: number;
  readonly operations: Readonly<Record<string, Latencies>>;
}

/** The time in which clients start, and the measured time after it. */
const RAMP = "10s";
const HOLD = "30s";

/** Builds the load generator, which uses only the standard library. Resolves to the path of the program. */
export function buildMixed(fixture: Fixture): Promise<string> {
  return buildGo(fixture, import.meta.dirname);
}

/** URLs of the server, and of a node that only verifies, if it is another one. */
export interface MixedUrls {
  readonly url: string;
  readonly verifyUrl?: string;
}

/** Runs the load generator. `rate` is the total of all clients in requests per second; 0: unlimited. Rejects on any error. */
export async function runMixed(
  fixture: Fixture,
  program: string,
  { url, verifyUrl = "" }: MixedUrls,
  rate: number,
): Promise<MixedReport> {
  const options = ["-url", url, "-verify-url", verifyUrl, "-ramp", RAMP, "-hold", HOLD, "-rate", String(rate)];
  return JSON.parse(await run(fixture.pinning.on("both", [program, ...options])));
}
