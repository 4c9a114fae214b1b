import type { ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { contentTypeMatcher, encodeEnvelope, type UniversalHandlerFn } from "@connectrpc/connect/protocol";
import { contentTypeStreamProto, endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import type { FastifyRequest } from "fastify";
import { ApiKeysService, type VerifyApiKeyRequest } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Implementation } from "../../api/row.ts";
import { rowOf } from "../../api/v2alpha1/rpcs.ts";
import { parseValid } from "../../api/validation.ts";
import type { Guard } from "../../auth/guard.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { requestKey } from "../connect/call.ts";
import type { Handler } from "../connect/register.ts";
import { report } from "../connect/streams.ts";
import { liftRequestLimit } from "../listener/http2.ts";
import { createPipeline } from "../pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "../pipeline/concurrency-limiter.ts";
import { CONNECT_DEADLINE, type Deadline, GRPC_DEADLINE, MAX_TIMER, timedOut } from "../wire/deadline.ts";
import { FastifyCall } from "../wire/fastify-call.ts";
import { grpcStatus } from "../wire/grpc.ts";
import { HttpError } from "../wire/http-error.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { type Protocol, rpcName } from "../wire/protocol.ts";
import { createTickBudget } from "../wire/tick-budget.ts";
import type { FastRpc, Response } from "./codecs.ts";
import { GRPC_TYPES } from "./protocols.ts";
import { type StreamedVerification, VerificationStream } from "./verification-stream.ts";

const { verifyApiKey, streamVerify: method } = ApiKeysService.method;

export interface StreamVerify extends StreamedVerification {
  /** Aborts when the server stops, with the error that ends the streams. */
  readonly stopping: AbortSignal;
}

/** Returns what a message of `StreamVerify` does: what `VerifyApiKey` does. Undefined if that is not implemented. */
export function streamedVerification(
  implementations: readonly Implementation[],
  fastRpcs: readonly FastRpc[],
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing?: Tracing,
): StreamedVerification | undefined {
  const unary = implementations.find((row) => row.method === verifyApiKey);
  const codec = fastRpcs.find(({ rpc }) => rpc.method === verifyApiKey)?.proto;
  const row = rowOf(method);
  if (unary === undefined || codec === undefined || row === undefined) return undefined;
  const handler = (request: Message) => parseValid(verifyApiKey.input, request as VerifyApiKeyRequest, unary.handler);
  const endpoint = { ...row, method, name: rpcName({ method }), handler };
  const pipeline = createPipeline<Message, Response>(endpoint, guard, limiter, tracing);
  const enter = createTickBudget<() => void>((resume) => resume(), MAX_PER_TICK);
  return { codec, pipeline, turn: () => new Promise(enter) };
}

/** Streams that are served in a tick of the event loop, which together take about 10 ms. */
const MAX_PER_TICK = 8;

/** A protocol of streams. */
interface Framing {
  readonly protocol: Protocol;
  readonly type: string;
  readonly deadline: Deadline;
  /** The header that names the compression of messages. */
  readonly encoding: string;
  /** Ends the response: sets its trailers, or returns its last frame. */
  end(trailer: Headers, error?: ConnectError): Uint8Array | undefined;
}

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
const GRPC: Framing = {
  protocol: "grpc",
  type: "application/grpc+proto",
  deadline: GRPC_DEADLINE,
  encoding: "grpc-encoding",
  end(trailer, error) {
    if (error === undefined) trailer.set("grpc-status", "0");
    else grpcStatus(error, trailer);
    return undefined;
  },
};

/** https://connectrpc.com/docs/protocol/#streaming-rpcs */
const CONNECT: Framing = {
  protocol: "connect",
  type: contentTypeStreamProto,
  deadline: CONNECT_DEADLINE,
  encoding: "connect-content-encoding",
  end(trailer, error) {
    return encodeEnvelope(endStreamFlag, Buffer.from(JSON.stringify(endStreamToJson(trailer, error, JSON_OPTIONS))));
  },
};

const FRAMINGS: ReadonlyMap<string | null, Framing> = new Map([
  ...GRPC_TYPES.map((type) => [type, GRPC] as const),
  [CONNECT.type, CONNECT],
]);

const POST = ["POST"];

/** Returns the handler of `StreamVerify`, which takes and writes the frames of a tick at once, and not each message by itself like Connect's. */
export function streamVerifyHandler(rpc: StreamVerify): Handler {
  const serve: UniversalHandlerFn = async ({ method, header, contextValues, httpVersion, body, signal }) => {
    const framing = FRAMINGS.get(header.get("content-type"));
    const request = contextValues?.get(requestKey);
    if (method !== "POST") return { status: 405 };
    if (framing === undefined || request === undefined) return { status: 415 };
    if (httpVersion.startsWith("1.")) return { status: 505, header: new Headers({ connection: "close" }) };
    const [head, trailer] = [new Headers({ "content-type": framing.type }), new Headers()];
    const call = new StreamCall(request, framing.protocol, head);
    const answers = respond(rpc, call, framing, body as AsyncIterable<Uint8Array>, signal, trailer);
    return { status: 200, header: head, body: answers, trailer: framing === GRPC ? trailer : undefined };
  };
  return Object.assign(serve, {
    method,
    service: method.parent,
    requestPath: `/${rpcName({ method })}`,
    protocolNames: [GRPC.protocol, CONNECT.protocol],
    allowedMethods: POST,
    supportedContentType: contentTypeMatcher(/^application\/(?:grpc|grpc\+proto|connect\+proto)$/),
  });
}

class StreamCall extends FastifyCall {
  readonly #header: Headers;

  constructor(request: FastifyRequest, protocol: Protocol, header: Headers) {
    super(request, protocol);
    this.#header = header;
  }

  setHeader(name: string, value: string): void {
    this.#header.set(name, value);
  }

  setTrailer(): void {}
}

const NO_BYTES = new Uint8Array();

/** Yields the body of the response to a stream. */
async function* respond(
  { stopping, ...rpc }: StreamVerify,
  call: FastifyCall,
  framing: Framing,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  trailer: Headers,
): AsyncGenerator<Uint8Array> {
  const stream = new VerificationStream(rpc, call);
  const over = Promise.withResolvers<void>();
  // The log line has the counts, also if the client disconnects, after which nothing resumes this function.
  void call.logged(over.promise);
  const onStop = () => stream.complete(stopping.reason);
  let timer: NodeJS.Timeout | undefined;
  const onClose = () => {
    clearTimeout(timer);
    stopping.removeEventListener("abort", onStop);
    stream.fail(new HttpError("REQUEST_CANCELLED"));
    call.add({ verdicts: stream.counts });
    over.resolve();
  };
  let error: ConnectError | undefined;
  try {
    const timeout = deadlineOf(call, framing);
    await rpc.pipeline.admit(call);
    const { raw } = call.request;
    if ("stream" in raw) liftRequestLimit(raw.stream as ServerHttp2Stream);
    signal.addEventListener("abort", onClose);
    stopping.addEventListener("abort", onStop);
    if (stopping.aborted) onStop();
    if (timeout <= MAX_TIMER) timer = setTimeout(() => stream.fail(timedOut()), timeout);
    // Nothing can be written when the client has disconnected.
    if (signal.aborted) return;
    // Sends the header, which some clients wait for before their first request.
    yield NO_BYTES;
    void stream.read(body);
    yield* stream.write();
  } catch (cause) {
    // The error of a write to a client that has reset the stream arrives here too.
    error = report(call.isAbandoned ? new HttpError("REQUEST_CANCELLED") : cause, call.log);
  } finally {
    onClose();
  }
  const last = framing.end(trailer, error);
  if (last !== undefined && !signal.aborted) yield last;
}

/** Returns the milliseconds until the deadline. Throws for a deadline or a compression that is not supported. */
function deadlineOf(call: FastifyCall, { deadline, encoding }: Framing): number {
  if ((call.header(encoding) ?? "identity") !== "identity") {
    throw new ConnectError("unsupported compression; allowed: identity", Code.Unimplemented);
  }
  const value = call.header(deadline.header);
  const timeout = value === undefined ? Number.POSITIVE_INFINITY : deadline.parse(value);
  if (timeout === undefined) throw invalidArgument("timeout", "is not well-formed");
  return timeout;
}
