import { type DescMethodUnary, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { frame } from "../../support/wire.ts";
import { observeHttp1, observeHttp2, type Seen } from "./observe.ts";
import type { Subject } from "./subjects.ts";

/** One protocol and encoding of a call. */
export interface Way {
  readonly name: string;
  readonly http: 1 | 2;
  readonly protocol: "rest" | "connect" | "grpc";
  readonly codec: "json" | "proto";
  readonly contentType: string;
  /** Whether the connection has sent a request that was handed over to Node's parser. */
  readonly isHandedOver?: boolean;
}

function way(http: 1 | 2, protocol: Way["protocol"], codec: Way["codec"], contentType: string): Way {
  return { name: `${protocol} ${codec} over HTTP/${http}`, http, protocol, codec, contentType };
}

const overHttp1 = [
  way(1, "rest", "json", "application/json"),
  way(1, "connect", "json", "application/json"),
  way(1, "connect", "proto", "application/proto"),
];

export const WAYS: readonly Way[] = [
  ...overHttp1,
  ...overHttp1.map((one) => ({ ...one, name: `${one.name}, handed over`, isHandedOver: true })),
  ...overHttp1.map(({ protocol, codec, contentType }) => way(2, protocol, codec, contentType)),
  way(2, "grpc", "proto", "application/grpc"),
];

const { verifyApiKey, batchVerifyApiKeys, deriveToken } = ApiKeysService.method;

const REST_PATHS: ReadonlyMap<DescMethodUnary, string> = new Map<DescMethodUnary, string>([
  [verifyApiKey, "/v2alpha1/admin/apiKeys:verify"],
  [batchVerifyApiKeys, "/v2alpha1/admin/apiKeys:batchVerify"],
  [deriveToken, "/v2alpha1/admin/apiKeys:derive"],
]);

export function pathOf({ protocol }: Way, method: DescMethodUnary = verifyApiKey): string {
  const rpcPath = `/${method.parent.typeName}/${method.name}`;
  return protocol === "rest" ? (REST_PATHS.get(method) ?? "") : rpcPath;
}

/** Encodes a message as the body of a request. */
export function bodyOf(way: Way, json: JsonObject, method: DescMethodUnary = verifyApiKey): Buffer {
  const bytes = way.codec === "json" ? JSON.stringify(json) : toBinary(method.input, fromJson(method.input, json));
  return framed(way, Buffer.from(bytes));
}

/** Puts bytes in place of a message. */
export function framed({ protocol }: Way, bytes: Uint8Array): Buffer {
  return protocol === "grpc" ? frame(bytes) : Buffer.from(bytes);
}

export interface Request {
  readonly id: string;
  readonly path?: string;
  readonly method?: string;
  /** In order; override the defaults of the protocol. Null: no header of that name. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly parts: readonly Uint8Array[];
  /** HTTP/1.1: whether the body is chunked, without a length. */
  readonly isChunked?: boolean;
}

/** Returns all responses; over HTTP/1.1 the connection must be usable for one more request. */
export async function send({ url, port }: Subject, way: Way, request: Request): Promise<Seen[]> {
  const { id, path = pathOf(way), method = "POST", parts, isChunked = false } = request;
  const own = { "content-type": way.contentType, "x-request-id": id };
  if (way.http === 2) {
    const fields = { ":method": method, ":path": path, ...given({ ...own, ...request.headers }) };
    return [await observeHttp2(url, fields, parts)];
  }
  const length: GivenHeaders = isChunked ? { "transfer-encoding": "chunked" } : { "content-length": `${size(parts)}` };
  const head = headLines(given({ host: `127.0.0.1:${port}`, ...length, ...own, ...request.headers }));
  const body = isChunked ? [...parts.map(chunk), "0\r\n\r\n"] : parts;
  const first = way.isHandedOver === true ? [OTHER_REQUEST] : [];
  return observeHttp1(port, [...first, `${method} ${path} HTTP/1.1\r\n${head}\r\n`, ...body, LAST_REQUEST]);
}

type GivenHeaders = NonNullable<Request["headers"]>;

function given(headers: GivenHeaders): Record<string, string | readonly string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

function size(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function chunk(part: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);
}

function headLines(headers: Readonly<Record<string, string | readonly string[]>>): string {
  return Object.entries(headers)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name}: ${value}\r\n`))
    .join("");
}

/** One that the fast path declines. */
export const OTHER_REQUEST = "GET /health/alive HTTP/1.1\r\nhost: localhost\r\nx-request-id: first\r\n\r\n";

export const LAST_REQUEST =
  "GET /health/alive HTTP/1.1\r\nhost: localhost\r\nx-request-id: last\r\nconnection: close\r\n\r\n";
