import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:http2";
import { join } from "node:path";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Measure } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { h2load, soundGrpcRate } from "./h2load.ts";

const HEADERS = { "content-type": "application/grpc+proto", te: "trailers" } as const;

/** Calls at once: twice as many as over HTTP/1.1, since eight connections share what a write costs. */
const CONNECTIONS = 8;
const STREAMS = 16;

export interface GrpcCall<I extends DescMessage, O extends DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  readonly request: MessageInitShape<I>;
  /** Whether this is the answer that is expected. */
  isRight(answer: MessageShape<O>): boolean;
}

/** Returns the call that verifies a credential, which is valid. */
export function verifyCall(credential: string) {
  const { verifyApiKey: method } = ApiKeysService.method;
  return { method, request: { credential }, isRight: ({ isValid }: MessageShape<typeof method.output>) => isValid };
}

/** Rounds of one call over gRPC, in calls a second. One call before and after each round is looked at closely. */
export async function grpcLoad<I extends DescMessage, O extends DescMessage>(
  stage: Stage,
  url: string,
  call: GrpcCall<I, O>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Measure> {
  const { method, request } = call;
  const frame = framed(toBinary(method.input, create(method.input, request)));
  const body = join(stage.dir, `frame-${randomUUID()}`);
  await writeFile(body, frame);
  const all = { ...HEADERS, ...headers };
  const options = { url: url + pathOf(method), headers: all, body, connections: CONNECTIONS, streams: STREAMS };
  return async () => {
    const answerBytes = await checkedCall(url, call, frame, all);
    const rate = soundGrpcRate(await h2load(stage, options), answerBytes, CONNECTIONS * STREAMS);
    await checkedCall(url, call, frame, all);
    return rate;
  };
}

export function pathOf({ parent, name }: DescMethodUnary): string {
  return `/${parent.typeName}/${name}`;
}

/** A message in its frame: not compressed, length in four bytes (gRPC PROTOCOL-HTTP2, Length-Prefixed-Message). */
function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Bytes of the answer's frame. Throws unless it is right. */
async function checkedCall<I extends DescMessage, O extends DescMessage>(
  url: string,
  { method, isRight }: GrpcCall<I, O>,
  frame: Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const session = connect(url);
  try {
    const stream = session.request({ ":method": "POST", ":path": pathOf(method), ...headers });
    let status: unknown;
    stream.on("response", (given) => {
      status ??= given["grpc-status"];
    });
    stream.on("trailers", (given) => {
      status ??= given["grpc-status"];
    });
    stream.end(frame);
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const answer = Buffer.concat(chunks);
    if (String(status) !== "0" || !isRight(fromBinary(method.output, answer.subarray(5)))) {
      throw new Error(`${url}${pathOf(method)} answered status ${status}`);
    }
    return answer.length;
  } finally {
    session.close();
  }
}
