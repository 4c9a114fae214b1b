import { resolve } from "node:path";
import { run } from "../harness/program.ts";
import type { Stage } from "../harness/stage.ts";

const SCRIPT = resolve(import.meta.dirname, "requests.lua");

export interface WrkOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A file of requests, as `writeRequests` or `writeBodies` makes it. */
  readonly bodies: string;
  readonly connections: number;
}

/** What `requests.lua` tells. Latencies are microseconds. */
export interface WrkResult {
  readonly requests: number;
  readonly bytes: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections that failed, and answers that did not come. */
  readonly broken: number;
}

export async function wrk(stage: Stage, { url, headers, bodies, connections }: WrkOptions): Promise<WrkResult> {
  const headerArguments = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const sizes = ["-t", "1", "-c", String(connections), "-d", String(stage.seconds), "--timeout", "10"];
  const command = ["wrk", ...sizes, "-s", SCRIPT, ...headerArguments, url, "--", bodies];
  return parseWrk(await run(stage.pinning.on("load", command)));
}

export function parseWrk(output: string): WrkResult {
  const [, json] = /^RESULT (\{.*\})$/m.exec(output) ?? [];
  if (json === undefined) throw new Error(`wrk told no result: ${output}`);
  return JSON.parse(json);
}

/** Requests a second. Throws if one was refused or lost, and if the answers are not of the one size that was seen to be right. */
export function soundRate(result: WrkResult): number {
  const { requests, microseconds, refused, broken } = result;
  if (requests === 0) throw new Error("no request was answered");
  if (refused > 0 || broken > 0) throw new Error(`${refused} of ${requests} requests were refused, ${broken} lost`);
  return requests / (microseconds / 1e6);
}

/** Size of a response with its headers, in bytes. */
export function answerSize({ bytes, requests }: WrkResult): number {
  return bytes / requests;
}
