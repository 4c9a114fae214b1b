import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import {
  ApiKeysService,
  type StreamVerifyRequestSchema,
  type StreamVerifyResponse,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { grpcPath, serializer } from "./protocols/grpc.ts";
import { answersIn } from "./stream-frames.ts";
import { rpcPath } from "./wire.ts";

const method = ApiKeysService.method.streamVerify;

/** Opens a stream by `@grpc/grpc-js`, which a test ends or the end of the test. */
export function openStream(address: string, headers: Record<string, string> = {}, deadline = 60_000) {
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const call = client.makeBidiStreamRequest(
    grpcPath(method),
    serializer(method.input),
    (bytes) => fromBinary(method.output, bytes),
    metadata,
    { deadline: Date.now() + deadline },
  );
  onTestFinished(() => call.cancel());
  const answers: StreamVerifyResponse[] = [];
  let isOver = false;
  const status = Promise.withResolvers<StatusObject>();
  call
    .on("data", (answer) => answers.push(answer))
    .on("error", () => {})
    .on("status", (reached) => {
      isOver = true;
      status.resolve(reached);
    });
  return {
    call,
    /** Those received so far. */
    answers,
    status: status.promise,
    send(message: MessageInitShape<typeof StreamVerifyRequestSchema>): void {
      call.write(create(method.input, message));
    },
    /** Resolves when so many answers have been received, or the stream has ended. */
    async received(count: number): Promise<readonly StreamVerifyResponse[]> {
      while (answers.length < count && !isOver) await Promise.race([once(call, "data"), status.promise]);
      return answers;
    },
    end(): Promise<StatusObject> {
      call.end();
      return status.promise;
    },
  };
}

/** Opens a stream over HTTP/2 itself, for bytes that no client of gRPC sends. It is not read until the caller does. */
export function openRawStream(url: string, headers: Record<string, string> = {}): ClientHttp2Stream {
  const session = connect(url);
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  const fields = { "content-type": "application/grpc", te: "trailers", ...headers };
  return session.request({ ":method": "POST", ":path": rpcPath(method), ...fields }).on("error", () => {});
}

/** Reads a stream to its end. Resolves to the answers, and to the status in the trailers. */
export async function readRawStream(stream: ClientHttp2Stream) {
  let status: unknown;
  stream.on("response", (fields) => (status ??= fields["grpc-status"]));
  stream.on("trailers", (fields) => (status ??= fields["grpc-status"]));
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return { answers: answersIn(Buffer.concat(chunks)), status };
}
