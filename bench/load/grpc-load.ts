import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:http2";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  VerifyApiKeyRequestSchema,
  type VerifyApiKeyResponse,
  VerifyApiKeyResponseSchema,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Measure } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { h2load, soundGrpcRate } from "./h2load.ts";

const PATH = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";
const HEADERS = { "content-type": "application/grpc+proto", te: "trailers" } as const;

/** Calls at once: twice as many as over HTTP/1.1, since eight connections share what a write costs. */
const CONNECTIONS = 8;
const STREAMS = 16;

/** Rounds of verifying one credential over gRPC, in calls a second. One call before and after each round is looked at closely. */
export async function grpcLoad(
  stage: Stage,
  url: string,
  credential: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Measure> {
  const frame = framed(credential);
  const body = join(stage.dir, `frame-${randomUUID()}`);
  await writeFile(body, frame);
  const all = { ...HEADERS, ...headers };
  const options = { url: url + PATH, headers: all, body, connections: CONNECTIONS, streams: STREAMS };
  return async () => {
    const answerBytes = await checkedCall(url, frame, all);
    const rate = soundGrpcRate(await h2load(stage, options), answerBytes, CONNECTIONS * STREAMS);
    await checkedCall(url, frame, all);
    return rate;
  };
}

/** A message in its frame: not compressed, length in four bytes (gRPC PROTOCOL-HTTP2, Length-Prefixed-Message). */
function framed(credential: string): Buffer {
  const message = toBinary(VerifyApiKeyRequestSchema, {
    $typeName: "keyhold.v2alpha1.VerifyApiKeyRequest",
    credential,
  });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Bytes of the answer's frame. Throws unless the call succeeded and the credential is valid. */
async function checkedCall(url: string, frame: Buffer, headers: Readonly<Record<string, string>>): Promise<number> {
  const session = connect(url);
  try {
    const stream = session.request({ ":method": "POST", ":path": PATH, ...headers });
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
    if (String(status) !== "0" || !verdictOf(answer).isValid) throw new Error(`${url} answered status ${status}`);
    return answer.length;
  } finally {
    session.close();
  }
}

function verdictOf(frame: Buffer): VerifyApiKeyResponse {
  return fromBinary(VerifyApiKeyResponseSchema, frame.subarray(5));
}
