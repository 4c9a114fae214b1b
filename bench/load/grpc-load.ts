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
import { Authorization } from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { encodeCheck } from "../../test/support/envoy-protos.ts";
import type { Fixture } from "../harness/fixture.ts";
import type { Measure } from "../harness/scenario.ts";
import { checkedGrpcRate, h2load } from "./h2load.ts";

const HEADERS = { "content-type": "application/grpc+proto", te: "trailers" } as const;

/** Concurrent calls: twice as many as over HTTP/1.1, since calls on one connection share the cost of writes. */
const CONNECTIONS = 8;
const STREAMS = 16;

export interface GrpcCall<I extends DescMessage, O extends DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  readonly request: MessageInitShape<I>;
  /** Whether the response is the expected one. */
  isExpected(answer: MessageShape<O>): boolean;
}

/** Where a credential is presented, as in the request. */
interface Presentation {
  readonly clientIp?: string;
  readonly requiredScopes?: string[];
  readonly audience?: string;
}

/** Returns the call that verifies a valid credential. */
export function verifyCall(credential: string, presentation: Presentation = {}) {
  const { verifyApiKey: method } = ApiKeysService.method;
  const request = { ...presentation, credential };
  return { method, request, isExpected: ({ isValid }: MessageShape<typeof method.output>) => isValid };
}

/** Returns the call with which Envoy asks about a usual request with a valid credential. */
export function checkCall(credential: string, requiredScope: string) {
  const { check: method } = Authorization.method;
  const fields = {
    ...{ ":authority": "orders.example.com", ":path": "/orders?page=2", ":method": "GET", ":scheme": "https" },
    ...{ "user-agent": "curl/8.14.1", accept: "*/*", authorization: `Bearer ${credential}` },
    ...{ "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https", "x-envoy-external-address": "203.0.113.7" },
    "x-request-id": "a1c5d0b4-6f0e-4c7e-9d8f-6f4d7f1f1a11",
  };
  const raw = Object.entries(fields).map(([key, value]) => ({ key, rawValue: Buffer.from(value) }));
  const peer = (address: string, portValue: number) => ({ address: { socketAddress: { address, portValue } } });
  const http = {
    ...{
      id: "1234567890123456789",
      method: "GET",
      path: "/orders?page=2",
      host: "orders.example.com",
      scheme: "https",
    },
    ...{ protocol: "HTTP/2", size: -1, headerMap: { headers: raw } },
  };
  const attributes = {
    source: peer("203.0.113.7", 51234),
    destination: peer("192.0.2.1", 8000),
    request: { time: { seconds: 1_800_000_000, nanos: 123_456_000 }, http },
    contextExtensions: { required_scopes: requiredScope },
    metadataContext: {},
    routeMetadataContext: {},
  };
  const request = fromBinary(method.input, encodeCheck({ attributes }));
  return { method, request, isExpected: ({ status }: MessageShape<typeof method.output>) => status?.code === 0 };
}

/** Measures one call over gRPC, in calls per second. One response before and one after each round is checked completely. */
export async function grpcLoad<I extends DescMessage, O extends DescMessage>(
  fixture: Fixture,
  url: string,
  call: GrpcCall<I, O>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Measure> {
  const { method, request } = call;
  const frame = framed(toBinary(method.input, create(method.input, request)));
  const body = join(fixture.dir, `frame-${randomUUID()}`);
  await writeFile(body, frame);
  const all = { ...HEADERS, ...headers };
  const options = { url: url + pathOf(method), headers: all, body, connections: CONNECTIONS, streams: STREAMS };
  return async () => {
    const answerBytes = await callAndCheck(url, call, frame, all);
    const rate = checkedGrpcRate(await h2load(fixture, options), answerBytes, CONNECTIONS * STREAMS);
    await callAndCheck(url, call, frame, all);
    return rate;
  };
}

export function pathOf({ parent, name }: DescMethodUnary): string {
  return `/${parent.typeName}/${name}`;
}

/** Returns the frame of a message: uncompressed, with a length of four bytes (gRPC PROTOCOL-HTTP2, Length-Prefixed-Message). */
function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Makes one call and returns the size of the response frame in bytes. Throws unless the response is the expected one. */
async function callAndCheck<I extends DescMessage, O extends DescMessage>(
  url: string,
  { method, isExpected }: GrpcCall<I, O>,
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
    if (String(status) !== "0" || !isExpected(fromBinary(method.output, answer.subarray(5)))) {
      throw new Error(`${url}${pathOf(method)} answered status ${status}`);
    }
    return answer.length;
  } finally {
    session.close();
  }
}
