import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { listenLocally } from "./listen.ts";

/** A span as it was sent, by opentelemetry/proto/trace/v1/trace.proto. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | boolean>>;
  /** Attributes of the process. */
  readonly resource: Readonly<Record<string, string | boolean>>;
}

/** A receiver of OTLP over HTTP, like a collector of OpenTelemetry. */
export interface Collector {
  /** Value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly requests: readonly Buffer[];
  spans(): Span[];
  close(): void;
}

export async function startCollector(): Promise<Collector> {
  const requests: Buffer[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const isExport = request.url === "/v1/traces" && request.headers["content-type"] === "application/x-protobuf";
    if (isExport) requests.push(body);
    response.writeHead(isExport ? 200 : 404, { "content-type": "application/x-protobuf" }).end();
  });
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    requests,
    spans: () => requests.flatMap(readRequest),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The fields of a message by number: bytes, or a number. */
type Fields = ReadonlyMap<number, readonly (Uint8Array | number)[]>;

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const values = fields.get(number) ?? [];
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(Number(reader.uint64()));
    else reader.skip(type);
    fields.set(number, values);
  }
  return fields;
}

const bytesOf = (fields: Fields, number: number) =>
  (fields.get(number) ?? []).filter((value) => typeof value !== "number");
const messages = (fields: Fields, number: number) => bytesOf(fields, number).map(fieldsOf);
const first = (fields: Fields, number: number) => Buffer.from(bytesOf(fields, number)[0] ?? []);

function readRequest(body: Buffer): Span[] {
  return messages(fieldsOf(body), 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const of = resource === undefined ? {} : attributesOf(resource, 1);
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2).map((span) => readSpan(span, of)));
  });
}

function readSpan(span: Fields, resource: Span["resource"]): Span {
  return {
    traceId: first(span, 1).toString("hex"),
    spanId: first(span, 2).toString("hex"),
    parentId: first(span, 4).toString("hex"),
    name: first(span, 5).toString(),
    kind: Number(span.get(6)?.[0] ?? 0),
    attributes: attributesOf(span, 9),
    resource,
  };
}

function attributesOf(fields: Fields, number: number): Record<string, string | boolean> {
  const pairs = messages(fields, number).map((pair) => {
    const [value] = messages(pair, 2);
    const isText = value?.has(1) === true;
    return [first(pair, 1).toString(), isText ? first(value, 1).toString() : value?.get(2)?.[0] === 1] as const;
  });
  return Object.fromEntries(pairs);
}
