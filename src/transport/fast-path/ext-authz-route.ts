import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CheckRequestSchema, CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import { type CheckedRequest, readCheckRequest } from "../../api/envoy/check-request.ts";
import type { CheckAnswer } from "../../api/envoy/check-response.ts";
import type { CallCounters } from "../call-metrics.ts";
import { fieldBound } from "../field-count.ts";
import { type Check, EXT_AUTHZ, MAX_CHECK_BYTES } from "../gateways/ext-authz.ts";
import type { FastRoute } from "./call.ts";
import { readUsualCheck } from "./check-reader.ts";
import { malformed } from "./codecs.ts";
import { GRPC_TYPES, grpcForm } from "./protocols.ts";

/** Returns the routes of Envoy's ext_authz over gRPC, by content type. */
export function extAuthzRoutes(check: Check, counters: CallCounters): ReadonlyMap<string, FastRoute> {
  const route: FastRoute<CheckedRequest, CheckAnswer> = {
    ...grpcForm(MAX_CHECK_BYTES, { read: (bytes) => readUsualCheck(bytes) ?? readAnyCheck(bytes), write }),
    rpc: check,
    name: EXT_AUTHZ,
    counter: counters.of(EXT_AUTHZ, "grpc"),
  };
  return new Map(GRPC_TYPES.map((type) => [type, route as FastRoute]));
}

const requireFewFields = fieldBound(CheckRequestSchema, MAX_CHECK_BYTES);

/** Throws `INVALID_ARGUMENT`. */
function readAnyCheck(bytes: Uint8Array): CheckedRequest {
  requireFewFields(bytes);
  try {
    return readCheckRequest(fromBinary(CheckRequestSchema, bytes));
  } catch {
    // The library's error quotes what Envoy sent, which may be a secret.
    throw malformed();
  }
}

function write(answer: CheckAnswer): Uint8Array {
  return toBinary(CheckResponseSchema, create(CheckResponseSchema, answer));
}
