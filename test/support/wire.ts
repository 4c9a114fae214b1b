import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { type DescMethod, type DescMethodUnary, fromBinary, getOption } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { afterAll, afterEach, beforeEach, expect, vi } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import type { Suite } from "./conformance.ts";
import { type Answer, readAnswer } from "./rest.ts";
import { storedKeys } from "./stored-keys.ts";

/** All unary RPCs of the API. */
export const RPCS: readonly DescMethodUnary[] = SERVICES.flatMap(({ methods }) =>
  methods.filter((method: DescMethod): method is DescMethodUnary => method.methodKind === "unary"),
);

export interface RestRoute {
  readonly rpc: DescMethodUnary;
  readonly httpMethod: string;
  /** Returns the path with this id in each of its variables: the key_id, or the seq of an event. */
  path(keyId: string): string;
}

/** All paths of the protos with their methods. */
export const REST_ROUTES: readonly RestRoute[] = RPCS.flatMap((rpc) => {
  const rule = getOption(rpc, http);
  const all = [rule, ...rule.additionalBindings].flatMap(({ pattern }): RestRoute[] => {
    if (pattern.case === undefined || pattern.case === "custom") throw new Error(`${rpc.name} has no simple path`);
    const template = pattern.value.replace(/\{collection=(\w+)\}/, "$1");
    const path = (keyId: string) => template.replaceAll(/\{[^}]+\}/g, keyId);
    return [{ rpc, httpMethod: pattern.case.toUpperCase(), path }];
  });
  return [...new Map(all.map((route) => [route.path(""), route])).values()];
});

/** Returns the path of an RPC in Connect, gRPC and gRPC-Web. */
export function rpcPath({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Sends bytes unchanged and parses the JSON of the response. */
export async function send(
  url: string,
  method: string,
  body: string | Uint8Array<ArrayBuffer> | undefined,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return readAnswer(await fetch(url, body === undefined ? { method, headers } : { method, headers, body }));
}

/** The content of an error in any of its forms. */
export interface Refused {
  readonly code: string;
  readonly reason: string | undefined;
  readonly fields: readonly string[];
}

/** Parses a Connect error. */
export function readConnectError({ body }: Answer): Refused {
  const details: { type: string; value: string }[] = body?.details ?? [];
  const byType = new Map(details.map(({ type, value }) => [type, Buffer.from(value, "base64")]));
  return { code: body?.code, ...readDetails(byType) };
}

function readDetails(byType: ReadonlyMap<string, Uint8Array>): Omit<Refused, "code"> {
  const info = byType.get(ErrorInfoSchema.typeName);
  const request = byType.get(BadRequestSchema.typeName);
  return {
    reason: info && fromBinary(ErrorInfoSchema, info).reason,
    fields:
      request === undefined ? [] : fromBinary(BadRequestSchema, request).fieldViolations.map(({ field }) => field),
  };
}

export interface GrpcAnswer extends Omit<Refused, "code"> {
  /** Number of the google.rpc.Code; undefined if there was no gRPC response. */
  readonly status: number | undefined;
  readonly message: string;
  readonly http: number | undefined;
  /** The frames before the trailers. */
  readonly data: Buffer;
  /** Whether the headers were all ("Trailers-Only"). */
  readonly isTrailersOnly: boolean;
  header(name: string): string | undefined;
}

/** Sends an HTTP/2 request with bytes instead of a gRPC message. Resolves with the trailers. */
export function callGrpc(
  url: string,
  path: string,
  bytes: Uint8Array,
  headers: Record<string, string> = {},
): Promise<GrpcAnswer> {
  const session = connectHttp2(url);
  return new Promise<GrpcAnswer>((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      ...headers,
    });
    const seen: Record<string, unknown> = {};
    const chunks: Buffer[] = [];
    let isTrailersOnly = false;
    const finish = () => resolve(readGrpc(seen, Buffer.concat(chunks), isTrailersOnly));
    stream.on("response", (fields, flags) => {
      Object.assign(seen, fields);
      isTrailersOnly = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on("trailers", (fields) => {
      Object.assign(seen, fields);
      finish();
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", finish).on("error", reject).end(bytes);
  }).finally(() => session.destroy());
}

function readGrpc(fields: Readonly<Record<string, unknown>>, data: Buffer, isTrailersOnly: boolean): GrpcAnswer {
  const status = fields["grpc-status"];
  const details = Buffer.from(String(fields["grpc-status-details-bin"] ?? ""), "base64");
  return {
    status: status === undefined ? undefined : Number(status),
    message: decodeURIComponent(String(fields["grpc-message"] ?? "")),
    http: Number(fields[":status"]),
    data,
    isTrailersOnly,
    header: (name) => (name in fields ? String(fields[name]) : undefined),
    ...readDetails(readStatusDetails(details)),
  };
}

/** google.rpc.Status: repeated google.protobuf.Any details = 3, each of string type_url = 1 and bytes value = 2. */
function readStatusDetails(bytes: Uint8Array): Map<string, Uint8Array> {
  return new Map(
    readFields(bytes, 3).map((any) => {
      const [type = new Uint8Array()] = readFields(any, 1);
      const [value = new Uint8Array()] = readFields(any, 2);
      return [Buffer.from(type).toString().replace(/^.*\//, ""), value];
    }),
  );
}

function readFields(bytes: Uint8Array, wanted: number): Uint8Array[] {
  const reader = new BinaryReader(bytes);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted) found.push(reader.bytes());
    else reader.skip(wireType, field);
  }
  return found;
}

/** Returns a gRPC frame: flags, length and bytes. The length may differ from that of the bytes. */
export function frame(bytes: Uint8Array, { flags = 0, length = bytes.length } = {}): Buffer<ArrayBuffer> {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

/** Writes bytes to the port, half-closes, and returns everything received until the server closes. */
export function exchange(address: string, bytes: string | Uint8Array): Promise<string> {
  const { port, hostname } = new URL(`http://${address}`);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port: Number(port), host: hostname });
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => {}).on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
    socket.end(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  });
}

/** Expects that each test of the file leaves all keys unchanged, and that the server is ready after them. */
export function expectNoChanges(suite: Suite): void {
  let before: unknown;
  beforeEach(async () => {
    before = await storedKeys(suite.sql);
  });
  afterEach(async () => {
    expect(await storedKeys(suite.sql)).toEqual(before);
  });
  afterAll(async () => {
    // A process that got no CPU for seconds has lost its lease, and acquires it again.
    const expectReady = async () => expect((await suite.rest("GET", "/health/ready")).status).toBe(200);
    await vi.waitFor(expectReady, { timeout: 10_000 });
  });
}
