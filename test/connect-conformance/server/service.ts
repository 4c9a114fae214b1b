import { setTimeout as sleep } from "node:timers/promises";
import type { MessageShape } from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import type { Call, Rpc, StreamRpc } from "../../../src/api/rpc.ts";
import { iterate } from "../../../src/lib/iterate.ts";
import { raceSignal } from "../../../src/lib/race-signal.ts";
import type { StreamingRpc } from "../../../src/transport/connect/streams.ts";
import { operator } from "../../support/principal.ts";
import { type Exchange, ofCall, ofContext, requestInfo, setMetadata } from "./exchange.ts";
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  ConformancePayload_RequestInfoSchema,
  ConformanceService,
  type Error as ErrorDefinition,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  type StreamResponseDefinition,
  UnaryRequestSchema,
  type UnaryResponseDefinition,
} from "./gen/connectrpc/conformance/v1/service_pb.js";

const { unary, idempotentUnary, clientStream, serverStream, bidiStream } = ConformanceService.method;

/**
 * Returns the service that the suite calls, without the method `Unimplemented`. `maxRequestBytes` limits each message; `onUnary` is
 * called for each call of its unary method.
 */
export function conformanceService(maxRequestBytes: number, onUnary: (call: Call) => void) {
  const admit: Rpc["admit"] = () => operator;
  const ofOne: Rpc<typeof unary.input, typeof unary.output> = {
    method: unary,
    maxRequestBytes,
    admit,
    invoke(request, _, call) {
      onUnary(call);
      return respond(ofCall(call), request.responseDefinition, [anyPack(UnaryRequestSchema, request)]);
    },
  };
  const ofIdempotent: Rpc<typeof idempotentUnary.input, typeof idempotentUnary.output> = {
    method: idempotentUnary,
    maxRequestBytes,
    admit,
    invoke: (request, _, call) =>
      respond(ofCall(call), request.responseDefinition, [anyPack(IdempotentUnaryRequestSchema, request)]),
  };
  const ofClient: StreamingRpc<typeof clientStream> = {
    method: clientStream,
    policy: "public",
    maxRequestBytes,
    serve: async (requests, context) => {
      const all = await Array.fromAsync(requests);
      return respond(
        ofContext(context),
        all[0]?.responseDefinition,
        all.map((request) => anyPack(ClientStreamRequestSchema, request)),
      );
    },
  };
  const ofServer: StreamRpc<typeof serverStream.input, typeof serverStream.output> = {
    method: serverStream,
    maxRequestBytes,
    admit,
    async *stream(request, _, call) {
      const { responseDefinition } = request;
      setMetadata(ofCall(call), responseDefinition);
      const responses = stream(ofCall(call), responseDefinition, [anyPack(ServerStreamRequestSchema, request)]);
      const { deadline } = call;
      yield* deadline === undefined ? responses : iterate(responses, (next) => raceSignal(deadline, next()));
    },
  };
  const ofBoth: StreamingRpc<typeof bidiStream> = {
    method: bidiStream,
    policy: "public",
    maxRequestBytes,
    serve: (requests, context) => converse(requests, ofContext(context)),
  };
  return { unary: ofOne, idempotentUnary: ofIdempotent, serverStream: ofServer, streams: [ofClient, ofBoth] };
}

/** Returns one response after the requested delay. */
async function respond(exchange: Exchange, definition: UnaryResponseDefinition | undefined, requests: Any[]) {
  setMetadata(exchange, definition);
  const info = requestInfo(exchange, requests);
  await sleep(definition?.responseDelayMs ?? 0);
  const response = definition?.response;
  if (response?.case === "error") throw toError(response.value, info);
  return { payload: { requestInfo: info, ...(response?.case === "responseData" && { data: response.value }) } };
}

type RequestInfo = MessageShape<typeof ConformancePayload_RequestInfoSchema>;

/** `info` is omitted if the client has it already. */
function toError({ code, message = "", details }: ErrorDefinition, info?: RequestInfo): ConnectError {
  const error = new ConnectError(message, Number(code));
  error.details.push(...details.map(({ typeUrl, value }) => ({ type: typeUrl.replace(/^.*\//, ""), value })));
  if (info !== undefined) error.details.push({ desc: ConformancePayload_RequestInfoSchema, value: info });
  return error;
}

/** Yields the responses from `first` on; `requests` are those that no response has described yet. */
async function* stream(
  exchange: Exchange,
  definition: StreamResponseDefinition | undefined,
  requests: Any[],
  first = 0,
) {
  const { responseData = [], responseDelayMs = 0, error } = definition ?? {};
  for (const [place, data] of responseData.slice(first).entries()) {
    const isDescribing = place === 0 && requests.length > 0;
    const payload = { data, ...(isDescribing && { requestInfo: requestInfo(exchange, requests) }) };
    await sleep(responseDelayMs);
    yield { payload };
  }
  if (error === undefined) return;
  throw toError(error, responseData.length === 0 ? requestInfo(exchange, requests) : undefined);
}

/** In full duplex yields a response to each request; in half duplex yields all responses after the last request. */
async function* converse(
  requests: AsyncIterable<MessageShape<typeof bidiStream.input>>,
  exchange: Exchange,
): AsyncGenerator<{ payload: object }> {
  let definition: StreamResponseDefinition | undefined;
  let isFullDuplex = false;
  let sent = 0;
  const pending: Any[] = [];
  for await (const request of requests) {
    if (definition === undefined) {
      definition = request.responseDefinition;
      isFullDuplex = request.fullDuplex;
      setMetadata(exchange, definition);
    }
    pending.push(anyPack(BidiStreamRequestSchema, request));
    const data = definition?.responseData[sent];
    if (!isFullDuplex) continue;
    if (data === undefined) break;
    await sleep(definition?.responseDelayMs ?? 0);
    yield { payload: { data, requestInfo: requestInfo(exchange, pending.splice(0)) } };
    sent++;
  }
  yield* stream(exchange, definition, pending, sent);
}
