import type { DescMethodUnary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { beforeAll, describe, expect, test } from "vitest";
import { CALLS, type HostileRequest } from "../hostile/calls.ts";
import { createExecutionMonitor, type ExecutionMonitor } from "../hostile/execution-monitor.ts";
import { converse, type Ending, toHttp1 } from "../hostile/http1.ts";
import { fieldsOf, goawayFrame, HELLO, headersFrame, resetFrame } from "../hostile/http2.ts";
import { useService } from "../support/conformance.ts";
import { Flag, Frame, frame } from "../support/http2-wire.ts";
import { issue } from "../support/rest.ts";
import { RPCS } from "../support/wire.ts";

const suite = useService();
let monitor: ExecutionMonitor;

beforeAll(async () => {
  monitor = await createExecutionMonitor(suite.sql, suite.rest);
});

/** RPCs with side effects. */
const CHANGES = RPCS.filter(({ name }) => /^(?:Create|BatchCreate|Update|Rotate|Delete|Revoke|SelfRevoke)/.test(name));

/** The same change over each protocol. */
function callsOf(rpc: DescMethodUnary): HostileRequest[] {
  const target = monitor.unfinished();
  return CALLS.map((make) => make(target)).filter(({ kind }) => kind.endsWith(` ${rpc.name}`));
}

/** Returns where to cut a body: after each field of a Protobuf message, where the rest is a valid message. */
function cutsOf({ kind, body }: HostileRequest): number[] {
  if (kind.startsWith("rest") || kind.includes("json")) return [body.length, body.length - 1, 0];
  // gRPC and gRPC-Web put five bytes before the message.
  const start = kind.startsWith("grpc") ? 5 : 0;
  const reader = new BinaryReader(body.subarray(start));
  const ends = [start];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    reader.skip(wireType, field);
    ends.push(start + reader.pos);
  }
  return ends;
}

interface Interruption {
  readonly name: string;
  /** Follows the DATA frame, on stream 1. */
  readonly bytes?: Buffer;
  readonly ending?: Ending;
  /** By how many bytes `content-length` exceeds the sent body; undefined: no such header. */
  readonly excess?: number;
  /** Whether the DATA frame ends the stream. */
  readonly isEnded?: boolean;
}

const HTTP2: readonly Interruption[] = [
  { name: "RST_STREAM", bytes: resetFrame(1) },
  { name: "RST_STREAM, NO_ERROR", bytes: resetFrame(1, 0) },
  { name: "RST_STREAM before a larger content-length is complete", bytes: resetFrame(1), excess: 9 },
  { name: "GOAWAY and FIN", bytes: goawayFrame(0) },
  { name: "FIN" },
  { name: "FIN before a larger content-length is complete", excess: 9 },
  { name: "a reset of the connection", ending: "reset" },
  { name: "END_STREAM before content-length is complete", excess: 9, isEnded: true },
  { name: "END_STREAM after more than content-length", excess: -1, isEnded: true },
  { name: "a malformed frame", bytes: frame(Frame.PING, 0, 0, Buffer.alloc(7)) },
];

function toFrames(request: HostileRequest, cut: number, { bytes, excess, isEnded = false }: Interruption): Buffer {
  const length = excess === undefined ? [] : [["content-length", String(cut + excess)] as const];
  const headers = headersFrame(1, [...fieldsOf(request), ...length]);
  const data = frame(Frame.DATA, isEnded ? Flag.END_STREAM : 0, 1, request.body.subarray(0, cut));
  return Buffer.concat([HELLO, headers, data, bytes ?? Buffer.alloc(0)]);
}

/** Waits until the server has processed the closed connections. */
async function expectUnchanged(): Promise<void> {
  for (let calls = 0; calls < 3; calls++) await issue(suite.rest, { name: "later" });
  expect(await monitor.changes()).toEqual([]);
}

function port(): number {
  return Number(new URL(suite.server.url).port);
}

describe.for(CHANGES.map((rpc) => [rpc.name, rpc] as const))("%s", ([, rpc]) => {
  test.for(HTTP2.map((one) => [one.name, one] as const))("HTTP/2, not executed: %s", async ([, interruption]) => {
    for (const request of callsOf(rpc)) {
      for (const cut of cutsOf(request)) {
        if (cut + (interruption.excess ?? 0) < 0) continue;
        const segment = toFrames(request, cut, interruption);
        await converse(port(), [segment], { ending: interruption.ending ?? "half-close" });
      }
      expect({ kind: request.kind, changes: await monitor.changes() }).toEqual({ kind: request.kind, changes: [] });
    }
    await expectUnchanged();
  });

  test.for(["half-close", "reset"] as const)("HTTP/1.1, not executed: a %s before the end", async (ending) => {
    for (const request of callsOf(rpc)) {
      if (request.body.length === 0) continue;
      for (const isChunked of [false, true]) {
        const bytes = toHttp1(request, { isChunked });
        await converse(port(), [bytes.subarray(0, -1)], { ending });
      }
    }
    await expectUnchanged();
  });
});
