import { randomUUID } from "node:crypto";
import { on, once } from "node:events";
import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import type { Field } from "../hostile/calls.ts";
import { fieldsOf, HELLO, headersFrame, resetFrame } from "../hostile/http2.ts";
import { table, useService } from "../support/conformance.ts";
import { Flag, Frame, frames, frame as wireFrame } from "../support/http2-wire.ts";
import { linesOf } from "../support/log-lines.ts";
import { grpcPath, serializer } from "../support/protocols/grpc.ts";
import { frame, rpcPath } from "../support/wire.ts";

const suite = useService();

const LIST_SERVICES = Buffer.from([0x3a, 0]);

/** The streams of the server, and a request that they answer at once. Each continues until its client ends it. */
const STREAMS: readonly (readonly [name: string, method: DescMethod, request: Buffer])[] = [
  ["Watch of health", Health.method.watch, Buffer.alloc(0)],
  ["reflection v1", ServerReflection.method.serverReflectionInfo, LIST_SERVICES],
  ["reflection v1alpha", ServerReflectionAlpha.method.serverReflectionInfo, LIST_SERVICES],
];

interface Protocol {
  readonly type: string;
  readonly timeout: (milliseconds: number) => Record<string, string>;
  /** In the trailers, or the end of the body. */
  readonly late: RegExp;
}

const grpcTimeout = (milliseconds: number) => ({ "grpc-timeout": `${milliseconds}m` });
const connectTimeout = (milliseconds: number) => ({ "connect-timeout-ms": `${milliseconds}` });

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  gRPC: { type: "application/grpc", timeout: grpcTimeout, late: /^grpc-status: 4$/m },
  "gRPC-Web": { type: "application/grpc-web+proto", timeout: grpcTimeout, late: /^grpc-status: 4\r$/m },
  Connect: { type: "application/connect+proto", timeout: connectTimeout, late: /"code":"deadline_exceeded"/ },
};

/** Sends a request without the end of the stream, so that only the server can end it. */
function open(method: DescMethod, headers: Record<string, string>, request: Buffer) {
  const session = connect(suite.server.url);
  onTestFinished(() => session.destroy());
  const id = randomUUID();
  const stream = session.request({ ":method": "POST", ":path": rpcPath(method), "x-request-id": id, ...headers });
  stream.on("error", () => {}).write(request);
  return { stream, id };
}

async function codeInLog(id: string): Promise<unknown> {
  return vi.waitFor(() => {
    const line = linesOf(suite.server.log()).find(({ reqId, msg }) => reqId === id && msg === "request");
    if (line === undefined) throw new Error("not logged yet");
    return line.code;
  });
}

describe.for(table(STREAMS))("%s", ([, method, request]) => {
  const isBidi = method.methodKind === "bidi_streaming";

  test.for(table(Object.entries(PROTOCOLS)))("ends with its status at the deadline, over %s", async ([, protocol]) => {
    const { type, timeout, late } = protocol;
    // A stream without a complete request must end too, unless the method needs one to begin.
    const requests = isBidi ? [frame(request), frame(request).subarray(0, 3)] : [frame(request)];
    for (const bytes of requests) {
      for (const milliseconds of [1, 60]) {
        const headers = { "content-type": type, te: "trailers", ...timeout(milliseconds) };
        const { stream, id } = open(method, headers, bytes);
        if (!isBidi) stream.end();
        const received: unknown[] = [];
        stream.on("data", (chunk: Buffer) => received.push(chunk.toString("latin1")));
        stream.on("trailers", (fields) =>
          received.push(...Object.entries(fields).map(([name, value]) => `\n${name}: ${value}\n`)),
        );
        await once(stream, "end");
        expect(received.join("")).toMatch(late);
        stream.close();
        expect(await codeInLog(id)).toBe("DEADLINE_EXCEEDED");
      }
    }
  });

  test.for(table(Object.entries(PROTOCOLS)))(
    "one that is reset is logged as cancelled, over %s",
    async ([, { type }]) => {
      // Node's client would send the end of the request before the reset, which is a request to end the stream.
      const socket = connectSocket(Number(new URL(suite.server.url).port), "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      const id = randomUUID();
      const fields: Field[] = [
        ["content-type", type],
        ["x-request-id", id],
        ["te", "trailers"],
      ];
      const opened = { kind: "", method: "POST", path: rpcPath(method), fields, body: Buffer.alloc(0) };
      const data = wireFrame(Frame.DATA, isBidi ? 0 : Flag.END_STREAM, 1, frame(request));
      socket.write(Buffer.concat([HELLO, headersFrame(1, fieldsOf(opened)), data]));
      let received = Buffer.alloc(0);
      for await (const [chunk] of on(socket, "data")) {
        received = Buffer.concat([received, chunk]);
        if (frames(received).some((one) => one.type === Frame.DATA)) break;
      }
      socket.write(resetFrame(1));
      expect(await codeInLog(id)).toBe("CANCELLED");
    },
  );

  test.for([
    ["deadline", status.DEADLINE_EXCEEDED, 300, () => {}],
    ["cancellation", status.CANCELLED, 60_000, (call: { cancel(): void }) => call.cancel()],
  ] as const)("grpc-js receives the status of its %s", async ([, wanted, timeout, endIt]) => {
    const client = new Client(suite.server.address, credentials.createInsecure());
    onTestFinished(() => client.close());
    const call = client.makeBidiStreamRequest(
      grpcPath(method),
      serializer(method.input),
      (bytes) => fromBinary(method.output, bytes),
      new Metadata(),
      { deadline: Date.now() + timeout },
    );
    const { promise: ended, resolve } = Promise.withResolvers<StatusObject>();
    call.on("error", () => {}).on("status", resolve);
    call.once("data", () => endIt(call));
    call.write(fromBinary(method.input, request));
    if (!isBidi) call.end();
    expect((await ended).code).toBe(wanted);
  });
});
