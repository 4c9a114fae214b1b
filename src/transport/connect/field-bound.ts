import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { type Compression, compressedFlag } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { fieldBound } from "../field-count.ts";
import { HEAD_BYTES } from "../lane/frame.ts";

type Handler = ConnectRouter["handlers"][number];
type Serve = (...request: Parameters<Handler>) => ReturnType<Handler>;
type Bytes = AsyncIterable<Uint8Array>;
type Check = (message: Uint8Array) => void;

/** The compressions that we take, with a look at what comes out of them before it is decoded. */
export function boundedCompressions({ method }: Rpc): Compression[] {
  const check = checkOf(method.input);
  return [compressionGzip, compressionBrotli].map((compression) => ({
    ...compression,
    decompress: async (bytes, maxBytes) => {
      const message = await compression.decompress(bytes, maxBytes);
      // JSON is no Protobuf, and passes: it has a bound of its own.
      check(message);
      return message;
    },
  }));
}

/** The handler of an RPC, with a look at binary messages that come as they are before they are decoded. */
export function withFieldBound(handler: Handler, rpcs: readonly Rpc[]): Handler {
  const rpc = rpcs.find(({ method }) => method === handler.method);
  if (rpc === undefined) return handler;
  const check = checkOf(rpc.method.input);
  const serve: Serve = (request) => {
    const { body } = request;
    const type = request.header.get("content-type") ?? "";
    if (type.includes("json") || !isStream(body)) return handler(request);
    const look: Check = type.includes("grpc") ? (frame) => check(messageOf(frame)) : check;
    return handler({ ...request, body: lookedAt(body, rpc.maxRequestBytes + HEAD_BYTES, look) });
  };
  const { service, method, requestPath, supportedContentType, protocolNames, allowedMethods } = handler;
  return Object.assign(serve, { service, method, requestPath, supportedContentType, protocolNames, allowedMethods });
}

export function isStream(body: unknown): body is Bytes {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

/** The whole of a body at once; above `limit` bytes, where it is refused, as it comes. */
async function* lookedAt(body: Bytes, limit: number, look: Check): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) yield* chunks.splice(0);
  }
  const bytes = Buffer.concat(chunks);
  look(bytes);
  if (bytes.length > 0) yield bytes;
}

/** None of a compressed one. */
function messageOf(frame: Uint8Array): Uint8Array {
  return ((frame[0] ?? 0) & compressedFlag) === 0 ? frame.subarray(HEAD_BYTES) : new Uint8Array();
}

function checkOf(desc: DescMessage): Check {
  const requireFewFields = fieldBound(desc);
  return (message) => {
    try {
      requireFewFields(message);
    } catch (error) {
      throw toConnectError(error);
    }
  };
}
