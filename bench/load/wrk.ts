import { resolve } from "node:path";
import type { Fixture } from "../harness/fixture.ts";
import { run } from "../harness/program.ts";

const SCRIPT = resolve(import.meta.dirname, "requests.lua");

const RESULT = /^RESULT (\{.*\})$/m;

export interface WrkOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A file that `writeRequests` or `writeBodies` has written. */
  readonly bodies: string;
  readonly connections: number;
}

/** The line that `requests.lua` prints. Latencies are in microseconds. */
export interface WrkResult {
  readonly requests: number;
  readonly bytes: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  /** Responses with status 400 or more. */
  readonly refused: number;
  /** Failed connections and missing responses. */
  readonly broken: number;
}

export async function wrk(fixture: Fixture, options: WrkOptions): Promise<WrkResult> {
  return parseWrk(await runWrk(fixture, options, fixture.seconds));
}

/** Seconds in which all requests of a file can be sent. */
const ALL_SENT = 1_800;

/** Sends each request of the file once. Rejects if a response is not 200, or too late. */
export async function sendAll(fixture: Fixture, options: WrkOptions): Promise<void> {
  const output = await runWrk(fixture, options, ALL_SENT, ["once"]);
  // The script exits without it after the last response.
  if (RESULT.test(output)) throw new Error(`not all requests were answered: ${output}`);
}

function runWrk(
  fixture: Fixture,
  { url, headers, bodies, connections }: WrkOptions,
  seconds: number,
  args: readonly string[] = [],
): Promise<string> {
  const headerArguments = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const sizes = ["-t", "1", "-c", String(connections), "-d", String(seconds), "--timeout", "10"];
  return run(
    fixture.pinning.on("load", ["wrk", ...sizes, "-s", SCRIPT, ...headerArguments, url, "--", bodies, ...args]),
  );
}

export function parseWrk(output: string): WrkResult {
  const [, json] = RESULT.exec(output) ?? [];
  if (json === undefined) throw new Error(`wrk printed no result: ${output}`);
  return JSON.parse(json);
}

/** Returns requests per second. Throws if a request was rejected or lost. */
export function checkedRate(result: WrkResult): number {
  const { requests, microseconds, refused, broken } = result;
  if (requests === 0) throw new Error("no request was answered");
  if (refused > 0 || broken > 0) throw new Error(`${refused} of ${requests} requests were refused, ${broken} lost`);
  return requests / (microseconds / 1e6);
}

/** Returns a function that returns a percentile of the latencies, in milliseconds. It throws if a request was rejected or lost. */
export function percentile(which: "p50" | "p99"): (result: WrkResult) => number {
  return (result) => {
    checkedRate(result);
    return result[which] / 1000;
  };
}

/** Returns the mean size of a response with its headers, in bytes. */
export function responseSize({ bytes, requests }: WrkResult): number {
  return bytes / requests;
}
