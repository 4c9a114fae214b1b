import { create, type DescMessage, type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { type CallRpc, decodeDetails, type Failure, type Protocol } from "./call.ts";

/** gRPC by `@grpc/grpc-js`, which shares no code with the server. */
export function grpcProtocol(
  name: string,
  address: string,
  channel: ChannelCredentials = credentials.createInsecure(),
  options: Record<string, string | number> = {},
): Protocol {
  const client = new Client(address, channel, options);
  const call: CallRpc = (method, request, headers = {}) =>
    new Promise((resolve, reject) => {
      let leading = new Metadata();
      client
        .makeUnaryRequest(
          grpcPath(method),
          serializer(method.input),
          (bytes) => fromBinary(method.output, bytes),
          create(method.input, request),
          toMetadata(headers),
          (error, message) => {
            if (message !== undefined) resolve({ ok: true, message, headers: toHeaders(leading) });
            else if (error === null) reject(new Error("neither a response nor an error"));
            else Promise.try(toFailure, error).then(resolve, reject);
          },
        )
        .on("metadata", (metadata) => {
          leading = metadata;
        });
    });
  return { name, call, close: () => client.close() };
}

export function grpcPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

export function serializer<D extends DescMessage>(desc: D) {
  return (message: Parameters<typeof toBinary<D>>[1]) => Buffer.from(toBinary(desc, message));
}

function toMetadata(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function toHeaders(metadata: Metadata): Headers {
  const values = Object.entries(metadata.getMap()).filter(([, value]) => typeof value === "string");
  return new Headers(values.map(([name, value]) => [name, String(value)]));
}

function toFailure({ code, details, metadata }: ServiceError): Failure {
  const [bytes] = metadata.get("grpc-status-details-bin");
  const rich = Buffer.isBuffer(bytes) ? readStatus(bytes) : undefined;
  if (rich !== undefined && (rich.code !== code || rich.message !== details)) {
    throw new Error(`grpc-status-details-bin says ${rich.code} ${rich.message}, the status ${code} ${details}`);
  }
  const headers = toHeaders(metadata);
  return { ok: false, code: status[code], message: details, details: decodeDetails(rich?.details ?? []), headers };
}

/** google.rpc.Status: int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3. */
function readStatus(bytes: Uint8Array) {
  const reader = new BinaryReader(bytes);
  const found = { code: 0, message: "", details: [] as { type: string; value: Uint8Array }[] };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) found.code = reader.int32();
    else if (field === 2) found.message = reader.string();
    else if (field === 3) found.details.push(readAny(reader.bytes()));
    else reader.skip(wireType, field);
  }
  return found;
}

/** google.protobuf.Any: string type_url = 1; bytes value = 2. */
function readAny(bytes: Uint8Array) {
  const reader = new BinaryReader(bytes);
  const any: { type: string; value: Uint8Array } = { type: "", value: new Uint8Array() };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) any.type = reader.string().replace(/^.*\//, "");
    else if (field === 2) any.value = reader.bytes();
    else reader.skip(wireType, field);
  }
  return any;
}
