import { create, toBinary } from "@bufbuild/protobuf";
import { CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import type { CheckedRequest } from "../../api/envoy/check-request.ts";
import type { CheckAnswer } from "../../api/envoy/check-response.ts";
import type { GatewayRequest } from "../../api/gateways/authorize.ts";
import { failed, type GatewayDecision } from "../../api/gateways/decision.ts";
import { type Check, EXT_AUTHZ, MAX_CHECK_BYTES } from "../gateways/ext-authz.ts";
import { FORWARD_AUTH, type ForwardAuth } from "../gateways/forward-auth.ts";
import { ForwardAuthRequest } from "../gateways/forward-auth-request.ts";
import type { CallCounters } from "../pipeline/access-log.ts";
import { codeOfStatus } from "../wire/protocol.ts";
import type { Answer, FastCall, FastRoute } from "./call.ts";
import { encodeOnce } from "./kept-answer.ts";
import { GRPC_TYPES, grpcForm } from "./protocols.ts";

/** Returns the routes of Envoy's ext_authz over gRPC, by content type. */
export function extAuthzRoutes(check: Check, counters: CallCounters): ReadonlyMap<string, FastRoute> {
  const route: FastRoute<CheckedRequest, CheckAnswer> = {
    ...grpcForm(MAX_CHECK_BYTES, { read: check.read, write }),
    rpc: check,
    name: EXT_AUTHZ,
    counter: counters.of(EXT_AUTHZ, "grpc"),
  };
  return new Map(GRPC_TYPES.map((type) => [type, route as FastRoute]));
}

function write(answer: CheckAnswer): Uint8Array {
  return encodeOnce(answer, "EXT_AUTHZ", encodeCheck);
}

function encodeCheck(answer: CheckAnswer): Uint8Array {
  return toBinary(CheckResponseSchema, create(CheckResponseSchema, answer));
}

/** Returns the route of requests to the forward-auth endpoint without a body, in any method. */
export function forwardAuthRoute(
  { pipeline, clientAddressOf, onDecision }: ForwardAuth,
  counters: CallCounters,
): FastRoute<GatewayRequest, GatewayDecision> {
  const answer = (call: FastCall, decision: GatewayDecision): Answer => {
    onDecision(decision.status);
    const headers = ["x-request-id", call.id, ...fieldsOf(decision)];
    return { status: decision.status, headers, body: call.method === "HEAD" ? "" : decision.body };
  };
  return {
    rpc: pipeline,
    name: FORWARD_AUTH,
    protocol: "rest",
    counter: counters.of(FORWARD_AUTH, "rest"),
    maxBodyBytes: 0,
    decode: (_, call) => new ForwardAuthRequest(call.target, call, clientAddressOf),
    answer(call, decision) {
      if (decision.status !== 200) call.add({ code: codeOfStatus(decision.status) });
      return answer(call, decision);
    },
    reject: (call, error) => answer(call, failed(error)),
  };
}

/** A header field contains no line feed. */
const SEPARATOR = "\n";

/** Returns the header fields of a decision, names and values in turn; those of a cached verdict are kept with it. */
function fieldsOf(decision: GatewayDecision): string[] {
  const encoded = encodeOnce(decision, "FORWARD_AUTH", encodeFields);
  const fields = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength).toString("latin1");
  return [...fields.split(SEPARATOR), ...(decision.limitHeaders ?? []).flat()];
}

function encodeFields({ headers, body }: GatewayDecision): Buffer {
  const fields = [...headers.flat(), "content-length", String(Buffer.byteLength(body))];
  return Buffer.from(fields.join(SEPARATOR), "latin1");
}
