import { describe, test } from "vitest";
import { CALLS, type CallTarget, type HostileRequest, OTHER_REQUESTS } from "../hostile/calls.ts";
import { converse } from "../hostile/http1.ts";
import { fieldsOf, goawayFrame, HELLO, headersFrame, resetFrame } from "../hostile/http2.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { Flag, Frame, frame } from "../support/http2-wire.ts";
import { useServerProcess } from "../support/server-process.ts";

const server = useServerProcess();

const TARGET: CallTarget = {
  issuedKeyId: UNKNOWN_KEY_ID,
  importedKeyId: UNKNOWN_KEY_ID,
  credential: "none",
  mark: "crash",
  suffix: "crash",
};

const all: ReadonlyMap<string, HostileRequest> = new Map(
  [...OTHER_REQUESTS, ...CALLS.map((make) => make(TARGET))].map((request) => [request.kind, request]),
);

function named(kind: string): HostileRequest {
  const request = all.get(kind);
  if (request === undefined) throw new Error(`there is no request "${kind}"`);
  return request;
}

/** Requests over HTTP/2, each with a part of its body. */
const INTERRUPTED = [
  "rest POST VerifyApiKey",
  "connect json VerifyApiKey",
  "grpc VerifyApiKey",
  "POST /nope",
  "reflection",
];

/** Frames that end a stream, or all of them, while the request is read. */
const INTERRUPTIONS: readonly (readonly [name: string, bytes: Buffer])[] = [
  ["RST_STREAM", resetFrame(1)],
  ["GOAWAY", goawayFrame(0)],
  ["GOAWAY with an error", goawayFrame(0, 1)],
  ["a frame of a wrong size", frame(Frame.PING, 0, 0, Buffer.alloc(7))],
  ["nothing", Buffer.alloc(0)],
];

const EXPECTATIONS = ["100-continue", "100-Continue", "something else"];

describe.for(EXPECTATIONS)("HTTP/2 with expect: %s", (expectation) => {
  describe.for(INTERRUPTED)("%s", (kind) => {
    describe.for(INTERRUPTIONS)("then %s", ([, interruption]) => {
      test.for(["half-close", "reset"] as const)("and a %s", async (ending) => {
        const request = named(kind);
        const headers = headersFrame(1, [...fieldsOf(request), ["expect", expectation]]);
        const segment = Buffer.concat([HELLO, headers, interruption]);
        await converse(server.port, [segment], { ending });
        await server.expectAlive();
      });

      test("with the whole body", async () => {
        const request = named(kind);
        const headers = headersFrame(1, [...fieldsOf(request), ["expect", expectation]]);
        const data = frame(Frame.DATA, Flag.END_STREAM, 1, request.body);
        await converse(server.port, [Buffer.concat([HELLO, headers, data, interruption])]);
        await server.expectAlive();
      });
    });
  });
});
